//! What a task of a fleet runs: a script for `sh`. Everything of the user's in it is quoted.

use super::super::UsageError;
use super::super::processes::Multicast;

/// The part that is the same for all.
const BODY: &str = include_str!("task.sh");

/// A script's own part.
pub(super) struct Script<'a> {
    /// The lines before all others: the shell, and what a scheduler reads.
    pub(super) head: String,
    /// The folder of the results, as the task sees it.
    pub(super) out: &'a str,
    /// The program, as the task sees it.
    pub(super) report: &'a str,
    /// Lines that set `task` and `machine`.
    pub(super) place: String,
    /// What starts the program: `srun …`, or nothing.
    pub(super) launch: &'a str,
    pub(super) tasks: u32,
    /// The arguments of a run that begins.
    pub(super) begin: Vec<String>,
    /// The arguments of a run however it begins.
    pub(super) always: Vec<String>,
    pub(super) multicast: Multicast,
}

impl Script<'_> {
    /// The whole script.
    pub(super) fn text(&self) -> String {
        let quoted = |arguments: &[String]| arguments.iter().map(|own| format!(" {}", quote(own))).collect::<String>();
        let (begin, always) = (quoted(&self.begin), quoted(&self.always));
        let mut text = self.head.clone();
        text +=
            &format!("out={}\nreport={}\ntasks={}\n{}", quote(self.out), quote(self.report), self.tasks, self.place);
        if self.multicast == Multicast::Off {
            text += "# NVLink multicast can disturb a host that others share.\n";
            Multicast::OFF.iter().for_each(|(name, value)| text += &format!("export {name}={value}\n"));
        }
        let launch = self.launch;
        text +=
            &format!("begin() {{ {launch}\"$report\" run --out \"$part\" --machine \"$machine\"{begin}{always}; }}\n");
        text += &format!("resume() {{ {launch}\"$report\" run --resume \"$1\" --out \"$part\"{always}; }}\n");
        text + BODY
    }
}

/// One word of a shell, whatever is in it.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Refuses a text that would not stay on its line.
pub(super) fn on_one_line<'a>(what: &str, text: &'a str) -> Result<&'a str, UsageError> {
    match text.chars().find(|character| character.is_control()) {
        Some(character) => {
            Err(UsageError(format!("{what} holds the character {character:?}, which no line of a script can hold")))
        }
        None => Ok(text),
    }
}
