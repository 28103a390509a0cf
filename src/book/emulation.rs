//! The notice on every page that shows what the CPU engine measured: an emulation has no times of a GPU.

use super::in_order::listed;
use super::tables::Machines;
use crate::present::escape;
use crate::results::Results;

/// Whether the results are those of an engine that emulates a GPU.
pub(super) fn is_emulated(results: &Results) -> bool {
    results.environment().device.engine == "cpu"
}

/// The page with the notice below its title; as it is where no machine that it shows is emulated.
pub(super) fn marked(page: String, machines: &Machines<'_>) -> String {
    let Some(notice) = notice(machines) else { return page };
    let title = page.lines().find(|line| line.starts_with("# ")).map(|title| format!("{title}\n"));
    match title.as_deref().and_then(|title| page.split_once(title).map(|(before, behind)| (before, title, behind))) {
        Some((before, title, behind)) => [before, title, &notice, behind].concat(),
        None => notice + &page,
    }
}

fn notice(machines: &Machines<'_>) -> Option<String> {
    let emulated = machines.named().filter(|(results, _)| is_emulated(results));
    let emulated: Vec<String> = emulated.map(|(_, machine)| format!("<strong>{}</strong>", escape(machine))).collect();
    let notice = match emulated.as_slice() {
        [] => return None,
        all if all.len() == machines.results.len() => {
            "<strong>An emulation:</strong> what waits for what is real, the times are not a GPU's.".to_owned()
        }
        [one] => format!("{one} is an emulation: what waits for what is real there, its times are not a GPU's."),
        several => {
            let several = listed(several);
            format!("{several} are emulations: what waits for what is real there, their times are not a GPU's.")
        }
    };
    Some(format!("\n<div class=\"emulation\" role=\"note\">\n<p>{notice}</p>\n</div>\n\n"))
}

#[cfg(test)]
mod tests {
    use super::super::source::nothing;
    use super::*;

    fn of(engine: &str, model: &str) -> Results {
        let mut results = nothing();
        let device = &mut results.runs[0].environment.device;
        (device.engine, device.model) = (engine.to_owned(), model.to_owned());
        results
    }

    fn page(results: &[Results]) -> String {
        marked("# Title\n\nText\n".to_owned(), &Machines::of(results))
    }

    #[test]
    fn a_page_of_the_cpu_engine_says_below_its_title_that_it_is_an_emulation() {
        let page = page(&[of("cpu", "CPU engine")]);
        assert!(
            page.starts_with("# Title\n\n<div class=\"emulation\"") && page.ends_with("</div>\n\n\nText\n"),
            "{page}"
        );
        assert!(page.contains("the times are not a GPU's"), "{page}");
    }

    #[test]
    fn a_page_of_both_engines_names_the_columns_of_the_emulated_one_alone() {
        let page = page(&[of("cuda", "NVIDIA H200"), of("cpu", "CPU engine")]);
        assert!(page.contains("<strong>CPU engine</strong> is an emulation"), "{page}");
        assert!(!page.contains("H200"), "{page}");
    }

    #[test]
    fn a_page_of_a_gpu_stays_as_it_is() {
        assert_eq!(page(&[of("cuda", "NVIDIA H200")]), "# Title\n\nText\n");
    }
}
