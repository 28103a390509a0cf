//! Results without what says whose they are, for a file that is handed on.
//!
//! # Method
//! Nobody can list all that may name a person, a machine or a place, so what stays is listed. Of each text, wherever it stands in
//! the file, those words stay that the program itself says ([`Vocabulary`]), small numbers, dates, and digests where digests
//! belong; of a processor or a GPU also what such names are made of. In the place of another word stands `withheld_` with a
//! number, the same for the same word, so that what named each other still does. A fact whose name is not known goes as a
//! whole. Numbers stay: they are what was measured.
//!
//! The fingerprint of a GPU is put through a hash with a key that is nowhere kept: two runs of one file still show that they
//! had the same GPU, and nobody who knows its UUID can find it.
//!
//! # What it does not cover
//! A word of the program's own may be somebody's name, too. It says nothing then, since it stands in any file.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use serde::Serialize;
use serde_json::{Map, Value};

use super::environment::MACHINE;
use super::run::Results;
use super::system::FINGERPRINT;

/// What names of processors, GPUs and operating systems are made of, beside numbers and codes such as `H100` or `8481C`.
const HARDWARE: &str = "NVIDIA GeForce RTX GTX Quadro Tesla TITAN Grace Hopper Blackwell Ada Generation Ampere Ti SUPER Super Laptop GPU \
    Max-Q PCIe PCIE SXM NVL HBM2 HBM2e HBM3 HBM3e MIG DGX Spark Jetson Orin Thor Xavier Graphics Device Server Workstation \
    Edition Superchip Intel R TM Xeon Core Ultra Pentium Celeron Atom Platinum Gold Silver Bronze Max CPU Processor AMD EPYC \
    Ryzen Threadripper PRO with Radeon ARM Arm Neoverse Cortex Apple Pro Core-Processor Linux kernel Debian GNU Ubuntu Fedora \
    CentOS Stream Red Hat Enterprise Rocky AlmaLinux SUSE openSUSE Leap Arch Amazon macOS Windows LTS unknown GNU/Linux Gen Cores \
    GRID NCCL SapphireRapids EmeraldRapids GraniteRapids Icelake Cascadelake Cooperlake Skylake Broadwell Haswell IBRS noTSX Milan \
    Rome Genoa Turin Bergamo Naples Siena";

/// The texts in the code of devices, experiments and errors: what they may say in a file, such as why a row is missing.
const SENTENCES: &str = include_str!(env!("SYNCSCOPE_SENTENCES"));

/// The keys whose texts are identifiers of parts: `overlap.transfer.h2d`. Those by which a run or a system is named in several
/// places are among them, so that it has one name in all.
const IDENTIFIERS: [&str; 8] = ["id", "name", "experiment", "only", "skip", "run", "system", "with"];

/// The words that a file may hold and that say nothing of its owner.
pub struct Vocabulary(HashSet<String>);

impl Vocabulary {
    /// The words of the schema of results files, of what devices and experiments say, and of names of hardware.
    pub fn new() -> Self {
        let mut own = Self(HashSet::new());
        own.learn_text("", SENTENCES);
        own.learn_text("", HARDWARE);
        own.learn_schema(schemars::schema_for!(Results).as_value());
        own
    }

    /// Takes the words of all texts and keys of a value.
    pub fn learn(&mut self, value: &impl Serialize) -> serde_json::Result<()> {
        self.learn_value("", &serde_json::to_value(value)?);
        Ok(())
    }

    fn learn_value(&mut self, key: &str, value: &Value) {
        match value {
            Value::String(text) => self.learn_text(key, text),
            Value::Array(items) => items.iter().for_each(|item| self.learn_value(key, item)),
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                self.learn_text("", key);
                self.learn_value(key, value);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Of a schema the names of what there is, not its sentences.
    fn learn_schema(&mut self, schema: &Value) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| self.learn_schema(item)),
            Value::Object(map) => map.iter().for_each(|(key, value)| match key.as_str() {
                "const" | "enum" => self.learn_value("", value),
                "properties" => {
                    value.as_object().into_iter().flat_map(Map::keys).for_each(|name| self.learn_text("", name));
                    self.learn_schema(value);
                }
                _ => self.learn_schema(value),
            }),
            _ => {}
        }
    }

    fn learn_text(&mut self, key: &str, text: &str) {
        for (word, _) in pieces(key, text).filter(|(_, is_word)| *is_word) {
            // Of a variable the name is everybody's, and the value is not.
            let word = word.split_once('=').map_or(word, |(name, _)| name);
            // Nor is a place on somebody's disk.
            if word.len() > 1 && word.starts_with(['/', '~']) {
                continue;
            }
            self.0.insert(word.trim_end_matches('.').to_owned());
        }
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(word.trim_end_matches('.'))
    }

    /// Whether all words of a text are known.
    fn has_all(&self, text: &str) -> bool {
        pieces("", text).all(|(piece, is_word)| !is_word || self.has(piece) || says_nothing(piece))
    }
}

/// What stays of the texts of one place of a file, and what is taken out.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Place {
    /// The place, such as `runs[].environment.host.cpu`.
    pub place: String,
    /// The texts that stay as they are, each once.
    pub stays: BTreeSet<String>,
    /// The texts of which something is taken out, with what stands there then; nothing, where all of it goes.
    pub taken_out: BTreeMap<String, String>,
}

impl Results {
    /// The results without what says whose they are; and what stays and is taken out, place by place.
    pub fn anonymous(&self, vocabulary: &Vocabulary) -> serde_json::Result<(Self, Vec<Place>)> {
        let mut cleaner =
            Cleaner { vocabulary, withheld: HashMap::new(), key: RandomState::new(), places: BTreeMap::new() };
        let mut value = serde_json::to_value(self)?;
        cleaner.clean(At { place: "", key: "", is_environment: false }, &mut value);
        let places = cleaner.places.into_iter().map(|(place, found)| Place { place, ..found }).collect();
        Ok((serde_json::from_value(value)?, places))
    }
}

struct Cleaner<'a> {
    vocabulary: &'a Vocabulary,
    /// What stands in the place of a word.
    withheld: HashMap<String, String>,
    /// The key of the hash of fingerprints.
    key: RandomState,
    places: BTreeMap<String, Place>,
}

/// Where a text stands.
#[derive(Clone, Copy)]
struct At<'a> {
    place: &'a str,
    /// The nearest key above it, or the name of the fact.
    key: &'a str,
    is_environment: bool,
}

impl Cleaner<'_> {
    fn clean(&mut self, at: At<'_>, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.noted(at, text, |own| own.text(at, text)),
            Value::Array(pairs) if at.is_environment && ["facts", "libraries"].contains(&at.key) => {
                pairs.retain_mut(|pair| self.fact(at, pair));
            }
            Value::Array(items) => {
                let place = format!("{}[]", at.place);
                items.iter_mut().for_each(|item| self.clean(At { place: &place, ..at }, item));
            }
            Value::Object(map) => {
                *map = std::mem::take(map)
                    .into_iter()
                    .map(|(key, value)| self.entry(at, key, value))
                    .collect::<Map<_, _>>();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn entry(&mut self, at: At<'_>, key: String, mut value: Value) -> (String, Value) {
        let named = match self.vocabulary.has_all(&key) {
            true => key,
            false => {
                let names = format!("{} (names)", at.place);
                self.noted(At { place: &names, ..at }, &key, |own| own.in_its_place(&key))
            }
        };
        let dot = if at.place.is_empty() { "" } else { "." };
        let place = format!("{}{dot}{named}", at.place);
        let is_environment = at.is_environment || named == "environment";
        self.clean(At { place: &place, key: &named, is_environment }, &mut value);
        (named, value)
    }

    /// A fact: a name and a value. Whether it stays.
    fn fact(&mut self, at: At<'_>, pair: &mut Value) -> bool {
        let Some([Value::String(name), Value::String(value)]) = pair.as_array_mut().map(Vec::as_mut_slice) else {
            return false;
        };
        if name == MACHINE || !self.vocabulary.has_all(name) {
            self.noted(at, &format!("{name}: {value}"), |_| String::new());
            return false;
        }
        let place = format!("{}: {name}", at.place);
        let at = At { place: &place, key: name, ..at };
        *value = self.noted(at, value, |own| match name.as_str() {
            FINGERPRINT => format!("{:08x}", own.key.hash_one(value.as_str()) >> 32),
            _ if name.ends_with("(bytes)") && is_count(value) => value.clone(),
            _ if value.contains('=') => own.assignments(at, value),
            _ => own.text(at, value),
        });
        true
    }

    /// Notes what became of a text.
    fn noted(&mut self, at: At<'_>, text: &str, become_: impl FnOnce(&mut Self) -> String) -> String {
        let now = become_(self);
        let found = self.places.entry(at.place.to_owned()).or_default();
        match now == text {
            true => drop(found.stays.insert(now.clone())),
            false => drop(found.taken_out.insert(text.to_owned(), now.clone())),
        }
        now
    }

    fn text(&mut self, at: At<'_>, text: &str) -> String {
        let is_of_digests =
            ["commit", "code"].contains(&at.key) || at.key.contains("(FNV-1a)") || at.key.contains("(SHA-256)");
        if humantime::parse_rfc3339(text).is_ok() || is_of_digests && is_digest(text) {
            return text.to_owned();
        }
        let mut rest = text;
        let mut out = String::new();
        while let Some((start, end)) = identifying_number(rest) {
            out.push_str(&self.words(at, &rest[..start]));
            let number = self.in_its_place(&rest[start..end]);
            out.push_str(&number);
            rest = &rest[end..];
        }
        out + &self.words(at, rest)
    }

    /// Variables with their values, of which the names stay: a value may hold anything, also what looks like the next one.
    fn assignments(&mut self, at: At<'_>, text: &str) -> String {
        let name =
            |part: &str| part.len() - part.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
        let begins = |part: &str| {
            let behind = &part[name(part)..];
            behind.len() < part.len() && (behind.starts_with('=') || behind == " (a path)")
        };
        let mut items: Vec<String> = Vec::new();
        for part in text.split(", ") {
            match items.last_mut() {
                Some(last) if !begins(part) => *last = format!("{last}, {part}"),
                _ => items.push(part.to_owned()),
            }
        }
        let cleaned = items.iter().map(|item| match item.split_once('=') {
            Some((name, value)) if !value.is_empty() => self.assignment(name, value),
            _ => self.text(at, item),
        });
        cleaned.collect::<Vec<_>>().join(", ")
    }

    /// Text without numbers that identify.
    fn words(&mut self, at: At<'_>, text: &str) -> String {
        // A system of an environment is an operating system.
        let key = if at.is_environment { "" } else { at.key };
        let stays = |own: &Self, piece: &str| own.stays(at, piece).is_some();
        let has_words = pieces(key, text).any(|(piece, is_word)| is_word && stays(self, piece));
        if !has_words && pieces(key, text).any(|(_, is_word)| is_word) && !text.contains('=') {
            return self.in_its_place(text);
        }
        pieces(key, text).fold(String::new(), |mut out, (piece, is_word)| {
            match is_word {
                true => out.push_str(&self.word(at, piece)),
                false => out.push_str(piece),
            }
            out
        })
    }

    fn word(&mut self, at: At<'_>, word: &str) -> String {
        if let Some(stays) = self.stays(at, word) {
            return stays.to_owned();
        }
        match word.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => self.assignment(name, value),
            _ => self.in_its_place(word),
        }
    }

    /// A variable without its value.
    fn assignment(&mut self, name: &str, value: &str) -> String {
        let name = if self.vocabulary.has(name) { name.to_owned() } else { self.in_its_place(name) };
        format!("{name}={}", self.in_its_place(value))
    }

    /// What of a word stays, where something does.
    fn stays<'w>(&self, at: At<'_>, word: &'w str) -> Option<&'w str> {
        if self.vocabulary.has(word) || says_nothing(word) {
            return Some(word);
        }
        let is_part = |part: &str| self.vocabulary.has(part) || says_nothing(part) || is_code(part);
        let says = |part: &str| part.contains(char::is_alphabetic);
        let names_hardware = [".host.cpu", ".device.model"].iter().any(|end| at.place.ends_with(end));
        let parts = || word.split(['-', '/']);
        // `i7-9700K` is a name; what has more such parts is a serial number.
        let is_short = parts().filter(|part| !self.vocabulary.has(part)).count() <= 2;
        if names_hardware && is_short && parts().all(is_part) && parts().any(says) {
            return Some(word);
        }
        let is_run =
            |(system, number): (&str, &str)| self.vocabulary.has(system) && number.len() <= 3 && is_number(number);
        if ["id", "run"].contains(&at.key) && word.rsplit_once('-').is_some_and(is_run) {
            return Some(word);
        }
        at.is_environment.then(|| version(word)).flatten()
    }

    fn in_its_place(&mut self, text: &str) -> String {
        let number = self.withheld.len() + 1;
        self.withheld.entry(text.to_owned()).or_insert_with(|| format!("withheld_{number}")).clone()
    }
}

/// The words of a text, and what stands between them.
fn pieces<'t>(key: &str, text: &'t str) -> impl Iterator<Item = (&'t str, bool)> {
    let (is_formula, is_identifier) = (key == "formula", IDENTIFIERS.contains(&key));
    let separates = move |c: char| {
        c.is_whitespace()
            || "()[]{},;:\"'`!?".contains(c)
            || is_formula && "+-*/·−×^".contains(c)
            || is_identifier && c == '.'
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_word = !separates(rest.chars().next()?);
        let end = rest.find(|c| separates(c) == is_word).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        Some((piece, is_word))
    })
}

/// The first number of a text that may name a person, a machine or a place, such as an address, a serial number or a telephone
/// number: long, or of groups of digits as no version and no date has them.
fn identifying_number(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find(|c: char| c.is_ascii_digit())?;
        // The digits of a word, such as `H200`, are no number.
        if text[..start].ends_with(|c: char| c.is_alphanumeric()) {
            from = start + text[start..].find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len() - start);
            continue;
        }
        // Separators belong to it as long as digits follow.
        let end = text[start..]
            .char_indices()
            .take_while(|(_, c)| c.is_ascii_digit() || " .:-".contains(*c))
            .filter(|(_, c)| c.is_ascii_digit())
            .last()
            .map_or(start, |(place, _)| start + place + 1);
        if identifies(&text[start..end]) {
            return Some((start, end));
        }
        from = end;
    }
}

fn identifies(number: &str) -> bool {
    let groups: Vec<&str> = number.split([' ', '.', ':', '-']).filter(|group| !group.is_empty()).collect();
    let digits: usize = groups.iter().map(|group| group.len()).sum();
    let is_date = groups.len() == 3 && groups[0].len() == 4 && groups[1..].iter().all(|group| group.len() == 2);
    let is_version = number.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit()) && groups.len() <= 3;
    number.contains(':') || groups.len() > 3 || digits >= 7 && !is_version && !is_date
}

/// A count of bytes, which has twelve digits at most.
fn is_count(text: &str) -> bool {
    text.len() <= 12 && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// The most digits of a part of a number that says nothing: a serial number has more.
const DIGITS: usize = 4;
/// Units behind a number.
const UNITS: [&str; 14] = ["%", "s", "ms", "µs", "ns", "B", "KB", "MB", "GB", "KiB", "MiB", "GiB", "MHz", "GHz"];

/// Whether a word is a sign, or a number of up to three short parts, which an address has not, with or without a unit.
fn says_nothing(word: &str) -> bool {
    let number = UNITS.iter().filter_map(|unit| word.strip_suffix(unit)).find(|rest| is_number(rest)).unwrap_or(word);
    !word.contains(char::is_alphanumeric) || is_number(number)
}

fn is_number(word: &str) -> bool {
    let is_short = |part: &str| (1..=DIGITS).contains(&part.len()) && part.bytes().all(|digit| digit.is_ascii_digit());
    word.split(['.', '-']).all(is_short) && word.split(['.', '-']).count() <= 3
}

/// The numbers in front of a version, where it is one: `6.18.44` of `6.18.44-a-site`.
fn version(word: &str) -> Option<&str> {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let (front, behind) = word.split_at(end);
    (front.contains('.') && !behind.is_empty() && is_number(front)).then_some(front)
}

/// A code of a product, such as `H100`, `8481C`, `7950X3D`, `i7` or `13th`: up to eight capital letters and digits, three letters in
/// front at most.
fn is_code(word: &str) -> bool {
    let code = ["i", "w"].iter().find_map(|line| word.strip_prefix(line)).or(word.strip_suffix("th")).unwrap_or(word);
    let front = code.len() - code.trim_start_matches(|c: char| c.is_ascii_uppercase()).len();
    let is_code = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    code.len() <= 8 && front <= 3 && code.contains(|c: char| c.is_ascii_digit()) && code.chars().all(is_code)
}

/// A digest of code or of a commit, in hexadecimal digits; a UUID has more.
fn is_digest(text: &str) -> bool {
    (7..=16).contains(&text.len()) && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn kept() -> Value {
        let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/two-gpus.json");
        serde_json::to_value(Results::read(&file).unwrap()).unwrap()
    }

    fn vocabulary() -> Vocabulary {
        let mut vocabulary = Vocabulary::new();
        vocabulary.learn(&kept()).unwrap();
        vocabulary
    }

    fn results(value: Value) -> Results {
        serde_json::from_value(value).unwrap()
    }

    /// Calls for each text of a value, with the nearest key above it.
    fn each_text(key: &str, value: &mut Value, change: &mut impl FnMut(&str, &mut String)) {
        match value {
            Value::String(text) => change(key, text),
            Value::Array(items) => items.iter_mut().for_each(|item| each_text(key, item, change)),
            Value::Object(map) => map.iter_mut().for_each(|(key, value)| each_text(key, value, change)),
            _ => {}
        }
    }

    /// The keys of which the value is one of a few words, or the file cannot be read.
    const CHOICES: [&str; 9] =
        ["outcome", "unit", "clock", "floor", "limit", "derivation", "stopped_by", "kind", "sync"];

    #[test]
    fn no_text_of_a_file_carries_a_secret_out_and_its_samples_stay() {
        let forms: [fn(&str, &str) -> String; 8] = [
            |_, secret| secret.to_owned(),
            |text, secret| format!("{text} {secret}"),
            |_, secret| format!("/home/{secret}/results"),
            |text, secret| format!("{text}={secret}"),
            |_, secret| format!("{secret}.example.org"),
            |_, secret| format!("GPU-{secret}"),
            |_, secret| format!("(\"{secret}\")"),
            |text, secret| format!("{text}-{secret}"),
        ];
        let (vocabulary, own) = (vocabulary(), kept());
        for (turn, _) in forms.iter().enumerate() {
            let (mut planted, mut secrets) = (own.clone(), HashMap::<String, String>::new());
            let mut plant = |key: &str, text: &mut String| {
                if CHOICES.contains(&key) {
                    return;
                }
                let number = secrets.len();
                let form = forms[(number + turn) % forms.len()];
                *text = secrets.entry(text.clone()).or_insert_with(|| form(text, &format!("sekret{number}"))).clone();
            };
            for (key, part) in planted.as_object_mut().unwrap() {
                each_text(key, part, &mut plant);
            }
            assert!(secrets.len() > 80, "{}", secrets.len());
            let before = results(planted);
            let (after, places) = before.anonymous(&vocabulary).unwrap();
            let text = serde_json::to_string(&after).unwrap();
            let place = text.find("sekret").map(|at| &text[at.saturating_sub(200)..at + 20]);
            assert_eq!(place, None);
            assert_eq!(after.samples_digest(), before.samples_digest());
            assert!(places.iter().any(|place| place.place == "runs[].environment.host.cpu"));
        }
    }

    /// Secrets in the forms that machines and people give them.
    const SECRETS: [&str; 48] = [
        "fe80::1ff:fe23:4567:890a",
        "[2001:db8::8a2e:370:7334]:22",
        "10.141.7.3:22",
        "3c:22:fb:aa:bb:cc",
        "3c-22-fb-aa-bb-cc",
        "3c22.fbaa.bbcc",
        "jane.doe+lab@example.org",
        r"C:\Users\janedoe\r.json",
        "D:/janedoe/r.json",
        r"\\fileserver\janedoe",
        "//fileserver/janedoe",
        "s3://janes-bucket/r",
        "https://jane:word@host/run",
        "/home/test/results",
        "~test/results",
        "$HOME/jane",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "sk-proj-abcDEF1234567890abcDEF",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "AKIAIOSFODNN7EXAMPLE",
        "hf_AbCdEfGhIjKl",
        "GPU-4f5e8899-aabb-ccdd-eeff-001122334455",
        "MIG-GPU-4f5e8899-aabb-ccdd-eeff-001122334455/1/0",
        "550e8400-e29b-41d4-a716-446655440000",
        "1654922003427",
        "PG509-A03-1234",
        "0000:3b:00.0",
        "00000000:81:00.0",
        "trainer-7d9f8b6c5d-x2x9k",
        "janedoe-notebook-0",
        "job_llama_jane",
        "slurm-4711234",
        "SLURM_JOB_NAME=jane",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI",
        "OMP_PLACES=janes",
        "test@stream",
        "stream@host.example",
        "H200-janedoe",
        "dgx-07",
        "r07n13",
        "gpu-a100-1.hpc.example",
        "S-1-5-21-3623811015",
        "deadbeefcafe0123",
        "+49 561 804 4711",
        "j\u{e4}ne",
        "\u{5f20}\u{4f1f}",
        "syncscope-jane",
        "cuda:jane",
    ];

    #[test]
    fn a_secret_of_any_form_goes_from_each_text_of_a_file() {
        let (vocabulary, own) = (vocabulary(), kept());
        let forms: [fn(&str, &str) -> String; 3] = [
            |text, secret| format!("{text} {secret}"),
            |text, secret| format!("{secret}, {text}"),
            |text, secret| format!("{text}-{secret}"),
        ];
        for (number, secret) in SECRETS.into_iter().enumerate() {
            let mut planted = own.clone();
            each_text("", &mut planted, &mut |key, text| {
                if !CHOICES.contains(&key) {
                    *text = forms[number % forms.len()](text, secret);
                }
            });
            let (after, _) = results(planted).anonymous(&vocabulary).unwrap();
            let (text, written) = (serde_json::to_string(&after).unwrap(), serde_json::to_string(secret).unwrap());
            let place = text.find(written.trim_matches('"')).map(|at| &text[at.saturating_sub(200)..at + secret.len()]);
            assert_eq!(place, None, "{secret}");
        }
    }

    #[test]
    fn a_run_has_one_name_in_all_places_whatever_its_system_is_called() {
        let renamed = kept().to_string().replace("syncscope-1", "lab.jane-1").replace("\"pytorch\"", "\"my.torch\"");
        let (after, _) = results(serde_json::from_str(&renamed).unwrap()).anonymous(&vocabulary()).unwrap();
        let (file, text) = (Path::new("s.json"), serde_json::to_string(&after).unwrap());
        assert!(!text.contains("jane") && Results::parse(&after.to_json(file).unwrap(), file).is_ok(), "{text:.2000}");
    }

    #[test]
    fn what_the_program_says_itself_stays_as_it_is() {
        let (before, vocabulary) = (results(kept()), vocabulary());
        let (after, _) = before.anonymous(&vocabulary).unwrap();
        assert_eq!(after.rows, before.rows);
        assert_eq!(after.suite, before.suite);
        let (one, other) = (before.environment(), after.environment());
        assert_eq!((&one.device.model, &one.host.cpu, &one.program.commit), {
            (&other.device.model, &other.host.cpu, &other.program.commit)
        });
    }

    #[test]
    fn a_gpu_is_the_same_within_a_file_and_another_in_the_next() {
        let (before, vocabulary) = (results(kept()), vocabulary());
        let fingerprints = || -> BTreeSet<String> {
            let (after, _) = before.anonymous(&vocabulary).unwrap();
            after.runs.iter().filter_map(|run| run.environment.device.fact(FINGERPRINT)).map(str::to_owned).collect()
        };
        let (one, other) = (fingerprints(), fingerprints());
        assert!(one.len() == 1 && other.len() == 1 && one != other, "{one:?} {other:?}");
        assert!(!one.contains(before.environment().device.fact(FINGERPRINT).unwrap()));
    }

    #[test]
    fn names_of_hardware_and_versions_stay_and_what_a_site_adds_goes() {
        let vocabulary = Vocabulary::new();
        let cleaned = |key: &str, text: &str| {
            let mut environment = kept();
            environment["runs"][0]["environment"]["host"][key] = text.into();
            let (after, _) = results(environment).anonymous(&vocabulary).unwrap();
            serde_json::to_value(after).unwrap()["runs"][0]["environment"]["host"][key].as_str().unwrap().to_owned()
        };
        for stays in [
            "AMD EPYC 9654 96-Core Processor",
            "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.00GHz",
            "Intel(R) Core(TM) i7-9700K",
            "AMD EPYC 7R13 Processor",
            "AMD Ryzen 9 7950X3D 16-Core Processor",
            "AMD Ryzen Threadripper PRO 7995WX 96-Cores",
            "13th Gen Intel(R) Core(TM) i9-13900K",
            "11th Gen Intel(R) Core(TM) i7-1185G7 @ 3.00GHz",
            "Intel Xeon Processor (SapphireRapids)",
            "Intel Xeon Processor (Skylake, IBRS)",
        ] {
            assert_eq!(cleaned("cpu", stays), stays);
        }
        assert_eq!(cleaned("system", "Linux (Ubuntu 24.04), kernel 6.8.0-site"), "Linux (Ubuntu 24.04), kernel 6.8.0");
        let gone = [
            "10.0.0.7",
            "1654922003427",
            "node7.cluster",
            "0a1b2c3d-0000-4e5f-8899-aabbccddeeff",
            "00:11:22:33:44:55",
            "10.13.37:42",
            "1654-9220-0342",
            "1654 9220 0342 719",
            "721 608-4711",
            "2001:0638:0902:1234",
        ];
        for goes in gone {
            let now = cleaned("system", goes);
            assert!(now.starts_with("withheld_") && !now.contains(' '), "{goes}: {now}");
            let behind = cleaned("cpu", &format!("NVIDIA H200 {goes}"));
            assert!(behind.starts_with("NVIDIA H200 withheld_"), "{goes}: {behind}");
        }
        for site in ["kit7.hpc2", "bob42-lab7", "ABC12345XYZ", "165-4922-0034-2719"] {
            let now = cleaned("cpu", &format!("NVIDIA H200 {site}"));
            assert!(now.starts_with("NVIDIA H200 withheld_"), "{site}: {now}");
        }
    }

    #[test]
    fn of_variables_the_names_stay_and_of_their_values_nothing() {
        let vocabulary = vocabulary();
        let cleaned = |text: &str| {
            let mut planted = kept();
            planted["runs"][0]["environment"]["host"]["facts"] = serde_json::json!([["environment variables", text]]);
            let (after, _) = results(planted).anonymous(&vocabulary).unwrap();
            serde_json::to_value(after).unwrap()["runs"][0]["environment"]["host"]["facts"][0][1].to_string()
        };
        for secret in ["0,1234-5678-9012", "a driver b", "bob, the run", "73", "x, CUDA_HOME=y"] {
            let now = cleaned(&format!("NCCL_NVLS_ENABLE={secret}, CUDA_HOME (a path)"));
            assert!(now.starts_with("\"NCCL_NVLS_ENABLE=withheld_"), "{now}");
            assert!(now.ends_with("CUDA_HOME (a path)\"") && !now.contains(secret), "{now}");
            assert!(!["driver", "run", "bob", "9012"].iter().any(|word| now.contains(word)), "{now}");
        }
    }

    #[test]
    fn the_runs_of_a_file_keep_their_names_however_many_there_are() {
        let mut many = kept();
        many["runs"][0]["id"] = "syncscope-12".into();
        for row in many["rows"].as_array_mut().unwrap() {
            for series in row["series"].as_array_mut().unwrap() {
                if series["run"] == "syncscope-1" {
                    series["run"] = "syncscope-12".into();
                }
            }
        }
        let before = results(many);
        let (after, _) = before.anonymous(&vocabulary()).unwrap();
        assert_eq!(after.rows, before.rows);
    }
}
