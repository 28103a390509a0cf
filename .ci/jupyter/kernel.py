"""The installed kernel, by Jupyter's own client: cells that fail in each way that there is and cells between them, interrupts,
completions, plots, memory, and what a kernel compiles.

Every failed cell has to be an error reply of its own with its whole message, and no word may stand under another cell.
Argument: how often the cells run. Ends with 1 at the first message that is lost.
"""

import base64
import os
import pathlib
import socket
import struct
import sys
import tempfile
import threading
import time

from jupyter_client.manager import KernelManager

PRELUDE = "#[derive(Debug)] struct Fault(u32);\nimpl std::fmt::Display for Fault { fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { write!(f, \"fault {}\\nof two lines\", self.0) } }"

# Code, the error's name or None for success, texts of its message, text of its standard output, text it shows.
CELLS = [
    ("let kept = String::from(\"kept\");", None, [], "", ""),
    ("println!(\"before 1\"); panic!(\"panic {}\", 1);", "Panic", ["panic 1"], "before 1\n", ""),
    ("panic!(\"panic 2\\nof two lines\");", "Panic", ["panic 2", "of two lines"], "", ""),
    ("let list: Vec<u32> = Vec::new(); let at = list.len(); list[at]", "Panic", ["index out of bounds"], "", ""),
    ("None::<u32>.expect(\"no reading\");", "Panic", ["no reading"], "", ""),
    ("Err::<(), _>(Fault(3))?;", "Error", ["fault 3", "of two lines"], "", ""),
    ("print!(\"open\"); println!(); Err::<u32, String>(\"words 4\".to_owned())?", "Error", ["words 4"], "open\n", ""),
    ("eprintln!(\"warned 5\"); Err::<(), _>(Fault(5))?;", "Error", ["warned 5", "fault 5"], "", ""),
    ("std::fs::read_to_string(\"/no such file\")?", "Error", ["No such file"], "", ""),
    ("let wrong: u32 = \"six\";", "CompileError", ["expected `u32`", "mismatched types"], "", ""),
    ("let = 7;", "CompileError", ["expected"], "", ""),
    ("nowhere::at_all();", "CompileError", ["nowhere"], "", ""),
    # A number of no type, which a method of any trait in scope would need.
    ("let c = 3;\nc", None, [], "", "3"),
    ("let c = 1.5;\nc", None, [], "", "1.5"),
    # Where it was: a panic, an error, and what does not compile, with letters outside of ASCII before it.
    ("let empty: Vec<u32> = Vec::new();\n\nlet at = 1; empty[at];", "Panic",
     ["at line 3 of the cell: let at = 1; empty[at];", "index out of bounds"], "", ""),
    ("fn later(x: Option<u32>) -> u32 {\n    x.unwrap()\n}\nlater(None);", "Panic",
     ["at line 2 of the cell: x.unwrap()", "called `Option::unwrap()`"], "", ""),
    ("later(None);", "Panic", ["in a cell before: x.unwrap()", "called `Option::unwrap()`"], "", ""),
    ("let y = 1;\n\nErr::<(), _>(Fault(7))?;", "Error", ["at line 3 of the cell: Err::<(), _>(Fault(7))?;", "of two lines"], "", ""),
    ("// µs\nlet right = \"é\"; let wrong: u32 = \"six\";", "CompileError", ["cell:2:35", "mismatched types"], "", ""),
    # Errors that nobody looked at.
    ("\"1\".parse::<u32>();", "CompileError", ["unused `Result` that must be used"], "", ""),
    ("\"one\".parse::<u32>()", "Error", ["Err(ParseIntError"], "", ""),
    ("\"1\".parse::<u32>()", None, [], "", "Ok(1)"),
    # A value that fails while it is shown, and an error beside what the cell displays.
    ("let five = std::hint::black_box(5);\n\nfive / (five - 5)", "Panic", ["at line 3 of the cell: five / (five - 5)", "divide by zero"], "", ""),
    ("Device::open(\"cpu:0\")?.evcxr_display();\nErr::<(), _>(\"zz9\")", "Error", ["Err(\"zz9\")"], "", ""),
    # What a cell prints without an end of the line is its own.
    ("print!(\"no end\");", None, [], "no end", ""),
    ("let six = 6; print!(\"no end\");", None, [], "no end", ""),
    # What cannot be kept, without a compilation.
    ("let f = |a: i32| a + 1;", "CompileError", ["Box it", "`f` is a closure"], "", ""),
    ("let lazy = (0..5).map(|x| x * 2);", "CompileError", ["collect", "`lazy` has the type `std::iter::Map<"], "", ""),
    ("let f = |a: i32| a + 1;\nlet f = f(2);\nf", None, [], "", "3"),
    ("let f: Box<dyn Fn(i32) -> i32> = Box::new(|a| a + 1);\nf(1)", None, [], "", "2"),
    ("kept.clone()", None, [], "", "kept"),
    ("std::thread::spawn(|| panic!(\"panic 8\")).join().unwrap();", "Panic", ["panic 8", "called `Result::unwrap()`"], "", ""),
    ("Device::open(\"cuda:99\")?", "Error", ["cuda:99"], "", ""),
    ("use std::io::Write; std::io::stdout().write_all(&[b'a', 0xff, b'\\n'])?;", None, [], "a\ufffd\n", ""),
    ("let mut line = String::new(); std::io::stdin().read_line(&mut line)?", None, [], "", "0"),
    ("for turn in 0..5000 { println!(\"out {turn}\"); eprintln!(\"error {turn}\"); } panic!(\"panic 9\");", "Panic",
     ["error 0\n", "error 4999\n", "panic 9"], "".join(f"out {turn}\n" for turn in range(5000)), ""),
    ("println!(\"last words\"); eprintln!(\"and errors\"); std::process::abort();", "ProcessEnded",
     ["and errors", "SIGABRT", "variables are lost"], "last words\n", ""),
    ("std::process::exit(0);", "ProcessEnded", ["exit status: 0", "variables are lost"], "", ""),
    ("1 + 1", None, [], "", "2"),
]


def run(client, code, timeout=300):
    """The reply and what was published for it."""
    messages = []
    reply = client.execute_interactive(
        code, timeout=timeout, stop_on_error=False, output_hook=lambda message: messages.append(message)
    )
    return reply["content"], messages


def check(client, cell):
    code, name, texts, printed, shown = cell
    reply, messages = run(client, code)
    kinds = [message["msg_type"] for message in messages]
    content = [message["content"] for message in messages]
    out = "".join(c["text"] for k, c in zip(kinds, content) if k == "stream" and c["name"] == "stdout")
    err = "".join(c["text"] for k, c in zip(kinds, content) if k == "stream" and c["name"] == "stderr")
    errors = [c for k, c in zip(kinds, content) if k == "error"]
    results = [c["data"].get("text/plain", "") for k, c in zip(kinds, content) if k == "execute_result"]
    trouble = []
    if out != printed:
        trouble.append(f"standard output {out!r}, not {printed!r}")
    if name is None:
        if reply["status"] != "ok" or errors or err:
            trouble.append(f"a failure: {reply} {err!r}")
        if shown and not any(shown in text for text in results):
            trouble.append(f"shows {results}")
    else:
        if reply["status"] != "error" or reply.get("ename") != name or len(errors) != 1:
            trouble.append(f"the reply is {reply}, errors {errors}")
        said = "\n".join(reply.get("traceback", [])) + err
        missing = [text for text in texts if text not in said]
        if missing or (texts and texts[-1] not in reply.get("evalue", "")):
            trouble.append(f"{missing} is missing in {reply}")
        if kinds.count("error") and kinds.index("error") < max((i for i, k in enumerate(kinds) if k == "stream"), default=-1):
            trouble.append("text behind the error")
    return [f"{code!r}: {line}" for line in trouble]


def interrupted(manager, client):
    """An endless cell ends when it is interrupted, says that variables are lost, and the next cell runs."""
    client.execute_interactive("let lost = 1;", timeout=300)
    reply, _ = interrupting(manager, client, "println!(\"runs\"); loop { std::hint::spin_loop() }")
    trouble = []
    if reply["status"] != "error" or "variables are lost" not in reply["evalue"]:
        trouble.append(f"interrupted: {reply}")
    return trouble + check(client, ("2 + 2", None, [], "", "4"))


def interrupting(manager, client, code):
    """The reply to a cell that is interrupted as soon as it says that it runs."""
    begun = threading.Event()

    def hook(message):
        if message["msg_type"] == "stream" and "runs" in message["content"]["text"]:
            begun.set()

    def interrupt():
        begun.wait()
        manager.interrupt_kernel()

    threading.Thread(target=interrupt, daemon=True).start()
    reply = client.execute_interactive(code, timeout=300, stop_on_error=False, output_hook=hook)
    return reply["content"], begun.is_set()


# Says that it runs when many rounds are complete and far more are to come.
MEASURES = """let calls = std::cell::Cell::new(0);
fn called(calls: &std::cell::Cell<u32>) {
    calls.set(calls.get() + 1);
    if calls.get() == 100 {
        println!("runs");
    }
    std::thread::sleep(std::time::Duration::from_millis(1));
}
let protocol = Protocol::samples(1_000_000).with_warmup(0).with_time_limit(3600.0);
let measured = Sampler::new(protocol).compare((("a", || called(&calls)), ("b", || called(&calls))))?;
measured.len()"""


def asked(manager, client):
    """What measures in a cell ends early when the cell is interrupted, and no variable is lost."""
    check(client, ("let still = 7;", None, [], "", ""))
    trouble = []
    reply, _ = interrupting(manager, client, MEASURES)
    if reply["status"] != "error" or reply["ename"] != "Interrupted" or "variables are kept" not in reply["evalue"]:
        trouble.append(f"interrupted while it measures: {reply}")
    return trouble + check(client, ("still", None, [], "", "7")) + check(client, ("measured.len()", None, [], "", "1"))


def completed(client):
    """A completion is the name alone, none is private, and those that are called often come first."""
    run(client, "let stream = Device::open(\"cpu:0\")?.stream()?;")
    matches = client.complete("stream.", 7, reply=True, timeout=300)["content"]["matches"]
    trouble = [f"`{name}` is offered" for name in matches if not name.replace("_", "").rstrip("!").isalnum()]
    trouble += [f"the private `{name}` is offered" for name in ("shared", "notes_recording") if name in matches]
    if not {"synchronize", "normal"} <= set(matches[:20]):
        trouble.append(f"what is often called is not offered first: {matches}")
    run(client, "let list = vec![1]; struct Job { handle: u8 }\nlet job = Job { handle: 1 };")
    for code, names in [("list.", {"push", "iter"}), ("list.iter().", {"map", "collect"}), ("job.", {"handle"}), ("std::time::Instant::", {"now"})]:
        matches = client.complete(code, len(code), reply=True, timeout=300)["content"]["matches"]
        if not names <= set(matches):
            trouble.append(f"behind `{code}` only {matches} is offered")
    # rust-analyzer panics on some codes that are not whole. The kernel goes on.
    for code in ("list.contains(&", "list.push(", "let y: i32 = "):
        client.complete(code, len(code), reply=True, timeout=300)
    return trouble + check(client, ("drop(job); list.len()", None, [], "", "1"))


def pictured(client):
    """A plot has PNG beside its SVG, for LaTeX, in an output of its own."""
    _, messages = run(client, "syncscope::present::BarPlot::of_times(\"Two\", &[(\"one\", 1e-6), (\"other\", 2e-6)])")
    data = [m["content"]["data"] for m in messages if m["msg_type"] == "execute_result"]
    heads = [base64.b64decode(own.get("image/png", ""))[:8] for own in data]
    right = heads == [b"\x89PNG\r\n\x1a\n"] and "data:image/svg+xml" in data[0]["text/html"]
    return [] if right else [f"a plot is shown as {[sorted(own) for own in data]}"]


def held(manager):
    """How many megabytes the kernel holds."""
    status = pathlib.Path(f"/proc/{manager.provisioner.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1000


def gone(manager, client):
    """A client that ends its connection in the middle ends nothing else."""
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 3) + b"REQ"
    for port in (manager.hb_port, manager.shell_port, manager.control_port, manager.iopub_port):
        with socket.create_connection((manager.ip, port)) as peer:
            peer.sendall(greeting + bytes([4, len(ready)]) + ready)
            answer = b""
            while b"READY" not in answer:
                answer += peer.recv(1024)
            # The kernel has read it, too, by the time that it answers on another channel.
            client.kernel_info(reply=True, timeout=100)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return check(client, ("3 + 3", None, [], "", "6"))


def folders():
    """The installed folder that kernels start from, and that of the newest kernel."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    newest = max(pathlib.Path(cache, "syncscope/kernel").glob("session-*"), key=lambda folder: folder.stat().st_mtime)
    return pathlib.Path(os.environ["JUPYTER_DATA_DIR"], "kernels/syncscope/warm"), newest


def copied():
    """How many bytes of the installed folder the newest kernel has copied and not linked."""
    warm, newest = folders()
    files = [newest / path.relative_to(warm) for path in warm.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink() and file.stat().st_nlink == 1)


def unchecked(client):
    """The first `let` that fails is told by a build of the cell alone, and not by a check of all dependencies."""
    _, newest = folders()
    made = lambda: {path.name for path in newest.rglob("*.rmeta") if not path.name.startswith(("libctx", "libcode_"))}
    before = made()
    cell = ("let x = Device::best()?.stream()?.ones::<f32>([2])?; let z = x + 1;", "CompileError", ["cell:1:", "cannot add"], "", "")
    trouble = check(client, cell)
    return trouble + [f"for a `let` that fails, {name} was compiled" for name in made() - before]


def depended(client):
    """A dependency that a cell adds costs itself alone: the versions that the library was compiled with stay."""
    warm, newest = folders()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "src").mkdir()
        pathlib.Path(folder, "src/lib.rs").write_text("pub fn answer() -> u32 { 42 }")
        pathlib.Path(folder, "Cargo.toml").write_text("[package]\nname = \"own\"\nedition = \"2024\"\n")
        trouble = check(client, (f":dep own = {{ path = \"{folder}\" }}\nown::answer()", None, [], "", "42"))
    packages = [set((folder / "Cargo.lock").read_text().split("[[package]]")[1:]) for folder in (warm, newest)]
    named = [{tuple(package.split("\n")[1:3]) for package in own if "\nsource = " in package} for own in packages]
    return trouble + [f"not as installed: {package}" for package in named[0] - named[1]]


def main(rounds):
    manager = KernelManager(kernel_name="syncscope")
    begun = time.monotonic()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    trouble, cells = [], 0
    try:
        first, messages = run(client, "Device::best()?")
        idle = held(manager)
        print(f"first answer after {time.monotonic() - begun:.1f} s, with {copied() / 1e6:.1f} MB copied and {idle:.0f} MB held")
        # rust-analyzer hears of few packages, and of what types are made of: with all it holds twice as much.
        if idle > 300:
            trouble.append(f"the kernel holds {idle:.0f} MB before its first completion")
        html = [m["content"]["data"].get("text/html", "") for m in messages if m["msg_type"] == "execute_result"]
        if first["status"] != "ok" or not any("<table" in text for text in html):
            trouble.append(f"the first cell shows {html}: {first}")
        trouble += unchecked(client)
        begun = time.monotonic()
        for number in ("1", "2"):
            trouble += check(client, (f"{number} + 1", None, [], "", ""))
        print(f"an edited cell of one line takes {(time.monotonic() - begun) / 2:.2f} s")
        for number in range(rounds):
            run(client, PRELUDE)
            for cell in CELLS:
                cells += 1
                trouble += [f"round {number + 1}: {line}" for line in check(client, cell)]
            trouble += asked(manager, client) + interrupted(manager, client)
            cells += 2
            if trouble:
                break
        code = "let device = Device::best()?;"
        found = client.inspect(code, code.index("best") + 2, reply=True, timeout=300)["content"]
        if not found["found"] or "The best device of this machine" not in found["data"]["text/plain"]:
            trouble.append(f"documentation of Device::best: {found}")
        trouble += pictured(client) + completed(client) + gone(manager, client) + depended(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
    print("\n".join(trouble) or f"{cells} cells in {rounds} rounds: no message was lost")
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
