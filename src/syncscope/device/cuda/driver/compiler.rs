//! From a source to machine code for one architecture, by NVRTC.
//!
//! To a cubin and not to PTX: the PTX of a new NVRTC can be newer than what the driver of the machine accepts.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use cudarc::nvrtc::sys::{self, nvrtcProgram, nvrtcResult};

use super::exit;
use super::libraries::{Library, toolkit_headers};
use crate::device::cuda::ENGINE;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// What the kernel files include, by this name.
const HEADER: (&CStr, &str) = (c"types.cuh", include_str!("../../../kernels/types.cuh"));

/// Beside the architecture. Line information costs nothing at run time and lets a profiler show the source.
const OPTIONS: [&str; 2] = ["--std=c++17", "--generate-line-info"];

/// What is compiled.
#[derive(Clone, Debug)]
pub(crate) struct Source<'a> {
    file: &'a str,
    text: &'a str,
    options: Vec<String>,
    is_own: bool,
}

impl<'a> Source<'a> {
    /// A file of the library's kernels, which may include its header.
    pub(crate) fn own(file: &'a str, text: &'a str) -> Self {
        Self { file, text, options: OPTIONS.map(str::to_owned).to_vec(), is_own: true }
    }

    /// Whether what it is compiled to may depend on other files. An include need not be spelled as one (`%:include`, a comment or
    /// the end of a line within it), so the word anywhere counts, also of `#embed` and `import`.
    pub(crate) fn may_read_files(&self) -> bool {
        // A directive goes on behind a backslash at the end of a line, which `??/` is, too.
        let text: String = self.text.chars().filter(|c| !c.is_whitespace() && !"\\?/".contains(*c)).collect();
        // Folders alone bring nothing in.
        let options = self.options.iter().filter(|option| !option.starts_with("--include-path="));
        let reads =
            |option: &String| ["include", "pch", "options-file", "optf"].iter().any(|word| option.contains(word));
        ["include", "embed", "import"].iter().any(|word| text.contains(word)) || options.into_iter().any(reads)
    }

    /// A user's source, with options of the user's. It may include the toolkit's headers, where there are any.
    pub(crate) fn of_user(file: &'a str, text: &'a str, options: &[String]) -> Self {
        let is_stated = |usual: &str| usual.starts_with("--std") && options.iter().any(|own| own.contains("-std="));
        let usual = OPTIONS.into_iter().filter(|usual| !is_stated(usual)).map(str::to_owned);
        let headers = toolkit_headers().map(|folder| format!("--include-path={}", folder.display()));
        Self { file, text, options: usual.chain(options.iter().cloned()).chain(headers).collect(), is_own: false }
    }
}

/// A loaded NVRTC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compiler {
    version: (i32, i32),
}

impl Compiler {
    /// Fails with what is missing where there is no NVRTC.
    pub(crate) fn load() -> Result<Self> {
        Library::Nvrtc.require()?;
        let mut version = (0, 0);
        // Safety: the library is there; writes two integers.
        match unsafe { sys::nvrtcVersion(&mut version.0, &mut version.1) } {
            nvrtcResult::NVRTC_SUCCESS => Ok(Self { version }),
            status => Err(failed("nvrtcVersion", status)),
        }
    }

    /// The version: `13.0`.
    pub(crate) fn version(self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// The cubin of `source` for `architecture`, compiled now.
    pub(crate) fn compile(self, source: &Source<'_>, architecture: &str) -> Result<Vec<u8>> {
        let _inside = exit::enter();
        let (program, file) = (Program::new(source)?, source.file);
        let architecture_option = format!("--gpu-architecture={architecture}");
        let options = source.options.iter().chain([&architecture_option]);
        let options = options.map(|option| text(file, option)).collect::<Result<Vec<CString>>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // Safety: the program is live, the options are terminated texts that outlive the call.
        let status = unsafe { sys::nvrtcCompileProgram(program.0, pointers.len() as i32, pointers.as_ptr()) };
        if status != nvrtcResult::NVRTC_SUCCESS {
            let log = format!("NVRTC {}: {status:?}\n{}", self.version(), program.log());
            return Err(DeviceError::KernelBuild { file: file.to_owned(), architecture: architecture.to_owned(), log });
        }
        program.cubin(file, architecture)
    }

    /// All that decides what [`compile`](Self::compile) gives.
    pub(crate) fn inputs(self, source: &Source<'_>, architecture: &str) -> Vec<String> {
        let header = if source.is_own { HEADER.1 } else { "" };
        let all = [source.file, source.text, header, architecture, &self.version()].map(str::to_owned);
        all.into_iter().chain(source.options.iter().cloned()).collect()
    }
}

/// A program of NVRTC, destroyed on drop.
struct Program(nvrtcProgram);

impl Program {
    fn new(source: &Source<'_>) -> Result<Self> {
        let file = source.file;
        let (own, name, header) = (text(file, source.text)?, text(file, file)?, text(file, HEADER.1)?);
        let mut raw = ptr::null_mut();
        let count = i32::from(source.is_own);
        // Safety: NVRTC copies the texts, all terminated, and writes one handle.
        let status = unsafe {
            let (headers, names) = ([header.as_ptr()], [HEADER.0.as_ptr()]);
            sys::nvrtcCreateProgram(&mut raw, own.as_ptr(), name.as_ptr(), count, headers.as_ptr(), names.as_ptr())
        };
        match status {
            nvrtcResult::NVRTC_SUCCESS => Ok(Self(raw)),
            status => Err(failed("nvrtcCreateProgram", status)),
        }
    }

    fn cubin(&self, file: &str, architecture: &str) -> Result<Vec<u8>> {
        let mut len = 0;
        // Safety: the program is live and compiled; writes one size.
        let status = unsafe { sys::nvrtcGetCUBINSize(self.0, &mut len) };
        if status != nvrtcResult::NVRTC_SUCCESS {
            return Err(failed("nvrtcGetCUBINSize", status));
        }
        if len == 0 {
            return Err(DeviceError::KernelBuild {
                file: file.to_owned(),
                architecture: architecture.to_owned(),
                log: "no machine code was made: an option, such as -dlto, asks for something else".to_owned(),
            });
        }
        let mut cubin = vec![0u8; len];
        // Safety: the buffer has the size that NVRTC asked for.
        match unsafe { sys::nvrtcGetCUBIN(self.0, cubin.as_mut_ptr().cast()) } {
            nvrtcResult::NVRTC_SUCCESS => Ok(cubin),
            status => Err(failed("nvrtcGetCUBIN", status)),
        }
    }

    fn log(&self) -> String {
        let mut len = 0;
        // Safety: the program is live; writes one size.
        if unsafe { sys::nvrtcGetProgramLogSize(self.0, &mut len) } != nvrtcResult::NVRTC_SUCCESS || len == 0 {
            return String::new();
        }
        let mut log = vec![0u8; len];
        // Safety: the buffer has the size that NVRTC asked for. What it did not write stays zero.
        unsafe { sys::nvrtcGetProgramLog(self.0, log.as_mut_ptr().cast()) };
        String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Safety: the program is live and not used again. A drop cannot return an error.
        unsafe { sys::nvrtcDestroyProgram(&mut self.0) };
    }
}

fn text(file: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| DeviceError::KernelBuild {
        file: file.to_owned(),
        architecture: "any".to_owned(),
        log: "the source, its name or an option holds a zero byte".to_owned(),
    })
}

fn failed(call: &'static str, status: nvrtcResult) -> DeviceError {
    DeviceError::call_failed(ENGINE, call, format!("{status:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_source_architecture_or_compiler_has_other_inputs() {
        let compiler = Compiler { version: (13, 0) };
        let inputs_of = |text, architecture| compiler.inputs(&Source::own("a.cu", text), architecture);
        let inputs = inputs_of("source", "sm_90");
        assert_eq!(inputs, inputs_of("source", "sm_90"));
        assert_ne!(inputs, inputs_of("source ", "sm_90"));
        assert_ne!(inputs, inputs_of("source", "sm_80"));
        assert_ne!(inputs, Compiler { version: (12, 9) }.inputs(&Source::own("a.cu", "source"), "sm_90"));
        assert_ne!(inputs, compiler.inputs(&Source::of_user("a.cu", "source", &[]), "sm_90"));
        let with = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            compiler.inputs(&Source::of_user("a.cu", "source", &options), "sm_90")
        };
        assert_ne!(with(&["-DA=1 -DB=2"]), with(&["-DA=1", "-DB=2"]));
    }

    #[test]
    fn a_source_that_may_read_other_files_is_known_however_it_spells_that() {
        let is_known = |text: &str, option: &str| !Source::of_user("a.cu", text, &[option.to_owned()]).may_read_files();
        assert!(is_known("int a;", "-DA=1") && is_known("int a;", "--include-path=."));
        for option in ["--pre-include=w.h", "-include", "--use-pch=w.pch", "--options-file=o", "-optf"] {
            assert!(!is_known("int a;", option), "{option}");
        }
        for text in [
            "#include \"w.h\"",
            "/* */ # include \"w.h\"",
            "%:include \"w.h\"",
            "#inc\\\nlude \"w.h\"",
            "??=inc??/\nlude \"w.h\"",
            "#define W \"w.h\"\n#include W",
            "_Pragma(\"include_alias(a, b)\")",
            "#embed \"w.h\"",
        ] {
            assert!(!is_known(text, "-DA=1"), "{text}");
        }
    }
}
