//! Jupyter's messages on the wire: frames, signatures, headers.
//!
//! Source: "Messaging in Jupyter", version 5.3 of the protocol.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use zeromq::ZmqMessage;

/// What stands between the addresses and the message.
const DELIMITER: &[u8] = b"<IDS|MSG>";

/// Where the kernel and its clients meet: Jupyter's connection file.
pub(super) struct Connection {
    content: Value,
    key: Vec<u8>,
    /// Names this run of the kernel.
    session: String,
}

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Whom it comes from or goes to.
    pub(super) addresses: Vec<Vec<u8>>,
    pub(super) header: Value,
    pub(super) content: Value,
}

impl Message {
    pub(super) fn kind(&self) -> &str {
        self.header["msg_type"].as_str().unwrap_or_default()
    }
}

impl Connection {
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let content: Value = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        let scheme = content["signature_scheme"].as_str().unwrap_or("hmac-sha256");
        if scheme != "hmac-sha256" {
            bail!("{}: messages are to be signed by {scheme}, and the kernel knows hmac-sha256", file.display());
        }
        let key = content["key"].as_str().unwrap_or_default().as_bytes().to_vec();
        Ok(Self { content, key, session: uuid::Uuid::new_v4().to_string() })
    }

    /// The address of a channel, such as `shell`.
    pub(super) fn endpoint(&self, channel: &str) -> anyhow::Result<String> {
        let text =
            |name: &str| self.content[name].as_str().with_context(|| format!("the connection file has no {name}"));
        let port = &self.content[format!("{channel}_port")];
        let port = port.as_u64().with_context(|| format!("the connection file has no port for {channel}"))?;
        let separator = if text("transport")? == "ipc" { "-" } else { ":" };
        Ok(format!("{}://{}{separator}{port}", text("transport")?, text("ip")?))
    }

    /// The message that frames make up.
    pub(super) fn decode(&self, frames: ZmqMessage) -> anyhow::Result<Message> {
        let frames = frames.into_vec();
        let start = frames.iter().position(|frame| &frame[..] == DELIMITER).context("a message without a delimiter")?;
        let [signature, header, parent, metadata, content, ..] = &frames[start + 1..] else {
            bail!("a message of {} frames", frames.len());
        };
        if !self.key.is_empty() {
            let mac = self.signing(&[header, parent, metadata, content])?;
            let signature = hex(signature).context("a signature that is no number")?;
            mac.verify_slice(&signature).context("a message that is not signed by this Jupyter")?;
        }
        Ok(Message {
            addresses: frames[..start].iter().map(|frame| frame.to_vec()).collect(),
            header: serde_json::from_slice(header)?,
            content: serde_json::from_slice(content)?,
        })
    }

    /// The frames of a message of a kind. On a channel that all hear, the address is its kind.
    pub(super) fn encode(
        &self,
        addresses: &[Vec<u8>],
        kind: &str,
        parent: &Value,
        content: &Value,
    ) -> anyhow::Result<ZmqMessage> {
        let header = json!({
            "msg_id": uuid::Uuid::new_v4().to_string(), "session": self.session, "username": "kernel",
            "date": jiff::Timestamp::now().to_string(), "msg_type": kind, "version": "5.3",
        });
        let parts: Vec<Vec<u8>> =
            [&header, parent, &json!({}), content].into_iter().map(serde_json::to_vec).collect::<Result<_, _>>()?;
        let signature: String = match self.key.is_empty() {
            true => String::new(),
            false => {
                let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
                self.signing(&parts)?.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
            }
        };
        let mut frames = addresses.iter().cloned().chain([DELIMITER.to_vec(), signature.into_bytes()]).chain(parts);
        let mut message = ZmqMessage::from(frames.next().unwrap_or_default());
        frames.for_each(|frame| message.push_back(frame.into()));
        Ok(message)
    }

    fn signing(&self, parts: &[impl AsRef<[u8]>]) -> anyhow::Result<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key)?;
        parts.iter().for_each(|part| mac.update(part.as_ref()));
        Ok(mac)
    }
}

fn hex(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() % 2 == 0 && text.is_ascii())?;
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(key: &str) -> Connection {
        let content = json!({"transport": "tcp", "ip": "127.0.0.1", "shell_port": 7});
        Connection { content, key: key.as_bytes().to_vec(), session: "s".to_owned() }
    }

    #[test]
    fn a_message_arrives_as_it_was_sent_and_none_with_another_key() {
        let (header, content) = (json!({"msg_type": "request"}), json!({"code": "1 + 1"}));
        let frames = connection("key").encode(&[b"client".to_vec()], "reply", &header, &content).unwrap();
        let message = connection("key").decode(frames.clone()).unwrap();
        assert_eq!(
            (message.kind(), &message.content, &message.addresses[..]),
            ("reply", &content, &[b"client".to_vec()][..])
        );
        assert!(connection("another").decode(frames).is_err());
    }

    #[test]
    fn a_channel_has_the_address_of_the_connection_file() {
        assert_eq!(connection("").endpoint("shell").unwrap(), "tcp://127.0.0.1:7");
        assert!(connection("").endpoint("control").is_err());
    }
}
