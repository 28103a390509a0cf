//! What an audit shows at the end of a cell of a notebook.

use syncscope_present::{Page, Show, displayed};

use crate::region::Region;
use crate::report::AuditReport;
use crate::tables::{places, summary, time_of};

/// How many places are listed.
const LISTED: usize = 20;

displayed!(AuditReport, Region);

impl Show for AuditReport {
    fn on(&self, page: Page) -> Page {
        let page = page.note(summary(self));
        let page = if self.places.is_empty() { page } else { page.show(&places(self, LISTED)) };
        let page = self.processes.iter().fold(page, |page, process| page.show(&time_of(process)));
        self.warnings.iter().fold(page, Page::note)
    }
}

impl Show for Region {
    fn on(&self, page: Page) -> Page {
        page.show(&self.report)
    }
}
