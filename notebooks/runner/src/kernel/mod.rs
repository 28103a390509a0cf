//! The Jupyter kernel "Rust (syncscope)": evcxr's cells, with failures that are failures.
//!
//! | file | holds |
//! |---|---|
//! | `wire` | Jupyter's messages: frames, signatures, headers |
//! | `install` | installing the kernel |
//! | `folder` | the folder that cells are compiled in |
//! | `tools` | the programs by which evcxr asks Cargo there |
//! | `start` | the session that a kernel begins with |
//! | `names` | the names that a completion offers |
//! | `packages` | which packages rust-analyzer loads |
//! | `live` | what a running cell writes, on its way to the notebook |
//! | `attempt` | cells without Jupyter, which `report lab check` runs |
//! | `work` | the thread that cells, completions and documentation are computed on |
//!
//! # Method
//! Sockets are served by one thread, cells by another. All that a cell writes, its failure, and that it is over are
//! published by one queue, so they arrive in their order and before the next cell begins.

mod attempt;
mod folder;
mod install;
mod live;
mod names;
mod packages;
mod start;
mod tools;
mod wire;
mod work;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use zeromq::{
    PubSocket, RepSocket, RouterRecvHalf, RouterSendHalf, RouterSocket, Socket, SocketRecv, SocketSend, ZmqMessage,
};

use crate::session::Control;
pub(crate) use attempt::attempt;
use folder::Installed;
pub(crate) use install::install;
pub(crate) use packages::shorten;
pub(crate) use start::prepare;
use wire::{Connection, Message};

/// How long the last messages have to leave.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// A message on its way out: to all, or to who asked on a channel.
enum Outgoing {
    Published(ZmqMessage),
    Shell(ZmqMessage),
    Control(ZmqMessage),
}

/// Sends messages, from any thread.
#[derive(Clone)]
struct Sender {
    connection: Arc<Connection>,
    queue: UnboundedSender<Outgoing>,
}

impl Sender {
    /// To all clients.
    fn publish(&self, parent: &Message, kind: &str, content: &Value) {
        let frames = self.connection.encode(&[kind.as_bytes().to_vec()], kind, &parent.header, content);
        self.queue(frames.map(Outgoing::Published));
    }

    /// That the kernel is `busy` with a message, or `idle` again.
    fn state(&self, parent: &Message, state: &str) {
        self.publish(parent, "status", &json!({"execution_state": state}));
    }

    /// To who sent `request` on the channel for such.
    fn reply(&self, request: &Message, content: &Value) {
        let frames = self.answer(request, content);
        self.queue(frames.map(Outgoing::Shell));
    }

    fn reply_on_control(&self, request: &Message, content: &Value) {
        let frames = self.answer(request, content);
        self.queue(frames.map(Outgoing::Control));
    }

    fn answer(&self, request: &Message, content: &Value) -> anyhow::Result<ZmqMessage> {
        let kind = request.kind().replace("_request", "_reply");
        self.connection.encode(&request.addresses, &kind, &request.header, content)
    }

    fn queue(&self, outgoing: anyhow::Result<Outgoing>) {
        match outgoing {
            // The queue ends with the process.
            Ok(outgoing) => drop(self.queue.send(outgoing)),
            Err(error) => eprintln!("kernel: {error:#}"),
        }
    }
}

/// Runs the kernel of Jupyter's `connection` until Jupyter ends it.
pub(crate) fn run(connection: &Path) -> anyhow::Result<()> {
    let installed = Installed::find()?;
    let folder = installed.enter()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(Connection::read(connection)?, installed, folder.clone()));
    // The cells' process has ended, or ends with this one.
    let _ = std::fs::remove_dir_all(&folder);
    ended?;
    // Threads that still compute are of no use.
    std::process::exit(0)
}

async fn serve(connection: Connection, installed: Installed, folder: PathBuf) -> anyhow::Result<()> {
    let connection = Arc::new(connection);
    let (mut shell, mut control, mut stdin) = (RouterSocket::new(), RouterSocket::new(), RouterSocket::new());
    let (mut heartbeat, mut published) = (RepSocket::new(), PubSocket::new());
    shell.bind(&connection.endpoint("shell")?).await?;
    control.bind(&connection.endpoint("control")?).await?;
    // Cells cannot ask; the channel has to be there.
    stdin.bind(&connection.endpoint("stdin")?).await?;
    heartbeat.bind(&connection.endpoint("hb")?).await?;
    published.bind(&connection.endpoint("iopub")?).await?;

    let (queue, outgoing) = unbounded_channel();
    let sender = Sender { connection: Arc::clone(&connection), queue };
    let (cells, requests) = std::sync::mpsc::channel();
    let ending: Arc<OnceLock<Arc<Control>>> = Arc::default();
    let worker = work::Worker { sender: sender.clone(), installed, folder, ending: Arc::clone(&ending) };
    std::thread::Builder::new().name("cells".to_owned()).spawn(move || worker.work(&requests))?;

    let ((shell_out, shell_in), (control_out, control_in)) = (shell.split(), control.split());
    tokio::select! {
        ended = send(outgoing, published, shell_out, control_out) => ended,
        ended = answer(shell_in, &sender, |message| cells.send(message).context("no cell can run any more")) => ended,
        ended = steer(control_in, &sender, &ending) => ended,
        () = beat(&mut heartbeat) => Ok(()),
        () = orphaned() => Ok(()),
    }?;
    if let Some(control) = ending.get() {
        control.kill();
    }
    Ok(())
}

async fn send(
    mut outgoing: UnboundedReceiver<Outgoing>,
    mut published: PubSocket,
    mut shell: RouterSendHalf,
    mut control: RouterSendHalf,
) -> anyhow::Result<()> {
    while let Some(message) = outgoing.recv().await {
        let sent = match message {
            Outgoing::Published(frames) => published.send(frames).await,
            Outgoing::Shell(frames) => shell.send(frames).await,
            Outgoing::Control(frames) => control.send(frames).await,
        };
        // Who asked may be gone by now.
        if let Err(error) = sent {
            eprintln!("kernel: a message did not leave: {error}");
        }
    }
    Ok(())
}

/// Takes requests of the shell channel: answers those that need no cells, and hands on the others.
async fn answer(
    mut shell: RouterRecvHalf,
    sender: &Sender,
    cells: impl Fn(Message) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    loop {
        let message = match sender.connection.decode(shell.recv().await?) {
            Ok(message) => message,
            Err(error) => {
                eprintln!("kernel: {error:#}");
                continue;
            }
        };
        let content = match message.kind() {
            "execute_request" | "complete_request" | "inspect_request" => {
                cells(message)?;
                continue;
            }
            "kernel_info_request" => information(),
            "is_complete_request" => json!({"status": "unknown"}),
            "comm_info_request" => json!({"status": "ok", "comms": {}}),
            "history_request" => json!({"status": "ok", "history": []}),
            "shutdown_request" => {
                shut_down(sender, &message, Sender::reply).await;
                return Ok(());
            }
            // Messages of widgets, which need no answer.
            _ => continue,
        };
        sender.state(&message, "busy");
        sender.reply(&message, &content);
        sender.state(&message, "idle");
    }
}

/// Takes requests of the control channel, also while a cell runs.
async fn steer(mut channel: RouterRecvHalf, sender: &Sender, ending: &OnceLock<Arc<Control>>) -> anyhow::Result<()> {
    loop {
        let message = match sender.connection.decode(channel.recv().await?) {
            Ok(message) => message,
            Err(error) => {
                eprintln!("kernel: {error:#}");
                continue;
            }
        };
        let content = match message.kind() {
            "interrupt_request" => {
                if let Some(control) = ending.get() {
                    control.interrupt();
                }
                json!({"status": "ok"})
            }
            "kernel_info_request" => information(),
            "shutdown_request" => {
                shut_down(sender, &message, Sender::reply_on_control).await;
                return Ok(());
            }
            _ => continue,
        };
        sender.state(&message, "busy");
        sender.reply_on_control(&message, &content);
        sender.state(&message, "idle");
    }
}

async fn shut_down(sender: &Sender, message: &Message, reply: fn(&Sender, &Message, &Value)) {
    sender.state(message, "busy");
    reply(sender, message, &json!({"status": "ok", "restart": message.content["restart"] == true}));
    sender.state(message, "idle");
    tokio::time::sleep(LAST_WORDS).await;
}

/// Answers whoever asks whether the kernel lives. Who has gone away in the meantime costs the others nothing.
async fn beat(heartbeat: &mut RepSocket) {
    loop {
        match heartbeat.recv().await {
            Ok(message) => drop(heartbeat.send(message).await),
            Err(_) => tokio::time::sleep(LAST_WORDS).await,
        }
    }
}

/// Returns when the process that started the kernel is gone.
async fn orphaned() {
    let parent = rustix::process::getppid();
    while rustix::process::getppid() == parent {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What the kernel says of itself.
fn information() -> Value {
    json!({
        "status": "ok", "protocol_version": "5.3", "implementation": "syncscope",
        "implementation_version": env!("CARGO_PKG_VERSION"),
        "language_info": {
            "name": "rust", "version": "", "mimetype": "text/x-rustsrc", "file_extension": ".rs",
            "pygments_lexer": "rust", "codemirror_mode": "rust",
        },
        "banner": "Rust, by evcxr, with syncscope", "help_links": [],
    })
}

/// The byte at which the character with a number begins.
fn byte_at(text: &str, character: u64) -> usize {
    let character = usize::try_from(character).unwrap_or(usize::MAX);
    text.char_indices().nth(character).map_or(text.len(), |(byte, _)| byte)
}

/// The number of the character that begins at a byte.
fn character_at(text: &str, byte: usize) -> usize {
    text.char_indices().take_while(|(at, _)| *at < byte).count()
}
