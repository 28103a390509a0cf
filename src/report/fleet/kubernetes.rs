//! An indexed Job of Kubernetes, one pod a task.

use std::num::NonZeroU32;

use clap::Args;
use serde_json::{Value, json};

use super::super::run::count;
use super::super::{AppContext, End, UsageError, output};
use super::script::{Script, on_one_line};
use super::{Arguments, Per};
use crate::results::nearest;
use crate::runner::Suite;

/// Where the volume with the results is in a pod.
const OUT: &str = "/results";
/// By what the pods of the job are known.
const LABEL: &str = "app.kubernetes.io/name";

/// Names the machine after its GPUs. Where the variable names none, since all are meant or they came another way, the driver does.
const GPU: &str = r#"gpus=${NVIDIA_VISIBLE_DEVICES-}
case $gpus in
    '' | void | none | all | /*) gpus=$(nvidia-smi -L 2>/dev/null | sed -n 's/.*(UUID: \([^)]*\)).*/\1/p') ;;
esac
[ -z "$gpus" ] || machine=$machine-$gpus
"#;

/// What a Job needs.
#[derive(Args)]
pub(super) struct Cluster {
    /// The image: it has this program as `report`, and `sh`
    #[arg(long, value_name = "IMAGE", help_heading = "Kubernetes", requires = "kubernetes")]
    image: Option<String>,
    /// The claim of the volume for the results, which all nodes can write (ReadWriteMany)
    #[arg(long, value_name = "PVC", help_heading = "Kubernetes", requires = "kubernetes", value_parser = label)]
    out_volume: Option<String>,
    /// The name of the Job
    #[arg(long, value_name = "NAME", help_heading = "Kubernetes", default_value = "syncscope", value_parser = label)]
    name: String,
    /// How many GPUs a task has
    #[arg(long, value_name = "N", help_heading = "Kubernetes", default_value = "1", value_parser = count::<NonZeroU32>)]
    gpus: NonZeroU32,
    /// How often a task that failed is started again
    #[arg(long, value_name = "N", help_heading = "Kubernetes", default_value = "3")]
    retries: u32,
}

/// A name by RFC 1123, of 63 characters at most, as names of Jobs and volume claims are.
fn label(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_framed = !text.starts_with('-') && !text.ends_with('-');
    if (1..=63).contains(&text.len()) && text.chars().all(is_plain) && is_framed {
        return Ok(text.to_owned());
    }
    Err("a name has lower case letters, digits and hyphens between them, 63 characters at most".to_owned())
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let cluster = &arguments.cluster;
    let (Some(image), Some(volume)) = (&cluster.image, &cluster.out_volume) else { return Ok(End::Refused) };
    on_one_line("the image's name", image)?;
    let suite = arguments.suite()?;
    // A file of this machine is not in the image.
    let own = match context.book.suite(suite) {
        Some((origin, text)) => Some(Suite::parse(text, &origin, &context.registry)?),
        None if suite.starts_with('/') => None,
        None => {
            let names: Vec<&str> = context.book.suites().collect();
            let (nearest, known) = (nearest(suite, names.iter().copied()), names.join(", "));
            let message = format!(
                "there is no suite `{suite}`{nearest}; there are: {known}; a file of the image has its whole path"
            );
            return Err(UsageError(message).into());
        }
    };
    let needs_gpu = arguments.check(own.as_ref(), context)?;
    // The pods of a Job are called after it and their number, and theirs is a name, too.
    let last = arguments.tasks.saturating_sub(1).to_string();
    label(&format!("{}-{last}", cluster.name)).map_err(|error| {
        UsageError(format!("--name {}: with a hyphen and the number of a task behind it: {error}", cluster.name))
    })?;
    let job = job(arguments, image, volume, suite, needs_gpu)?;
    output::print_json(&job)?;
    Ok(End::Well)
}

fn job(arguments: &Arguments, image: &str, volume: &str, suite: &str, needs_gpu: bool) -> anyhow::Result<Value> {
    let Cluster { name, gpus, retries, .. } = &arguments.cluster;
    let mut job: Value = serde_json::from_str(include_str!("job.json"))?;
    job["metadata"]["name"] = json!(name);
    job["metadata"]["labels"][LABEL] = json!(name);
    let spec = &mut job["spec"];
    spec["completions"] = json!(arguments.tasks);
    spec["parallelism"] = json!(arguments.tasks);
    // One task that fails ends no other.
    spec["backoffLimitPerIndex"] = json!(retries);
    spec["maxFailedIndexes"] = json!(arguments.tasks);
    spec["template"]["metadata"]["labels"][LABEL] = json!(name);
    let pod = &mut spec["template"]["spec"];
    pod["volumes"][0]["persistentVolumeClaim"]["claimName"] = json!(volume);
    if arguments.per == Per::Node {
        let own =
            json!({ "labelSelector": { "matchLabels": { LABEL: name } }, "topologyKey": "kubernetes.io/hostname" });
        pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!([own]);
    }
    let container = &mut pod["containers"][0];
    container["image"] = json!(image);
    // What it says goes to a file beside the results; Kubernetes takes `$$` for `$`.
    let script = script(arguments, suite, needs_gpu)?.replace('$', "$$");
    container["command"] = json!(["/bin/sh", "-c", script]);
    if needs_gpu {
        container["resources"]["limits"]["nvidia.com/gpu"] = json!(gpus);
    }
    Ok(job)
}

fn script(arguments: &Arguments, suite: &str, needs_gpu: bool) -> anyhow::Result<String> {
    let gpu = match arguments.per {
        Per::Gpu if needs_gpu => GPU,
        Per::Gpu | Per::Node => "",
    };
    let place = format!(
        "task=$JOB_COMPLETION_INDEX\nmachine={}$NODE_NAME\n{gpu}exec >>\"$out/task-$task.log\" 2>&1\n",
        arguments.prefix()
    );
    let script = Script {
        head: String::new(),
        out: OUT,
        report: "report",
        place,
        launch: "",
        tasks: arguments.tasks,
        begin: arguments.begin(suite)?,
        always: arguments.always(),
        multicast: arguments.multicast(),
    };
    Ok(script.text())
}
