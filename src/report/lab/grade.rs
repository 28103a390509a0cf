//! What of a lab is to be run, and the points of what it came to.
//!
//! # Method
//! As nbgrader's `autograde`: the text of a check is the course's, whatever the submitted notebook holds in its place, and
//! a check gives all of its points if it does not fail. A task that is not filled panics, so its checks fail.
//!
//! # Limits
//! A cell that is both a task and gives points is for a person: it has no points here. A cell that is no check can define
//! what a check uses, so who wants to cheat can. Read the answers.

use serde::Serialize;
use serde_json::Value;

use super::attempt::Failure;
use super::cells::{Lab, Mark, is_code, mark, source};
use crate::present::{Cell, Column, Role, Table, TableGroup, TableRow};

/// A notebook that is to be graded.
pub(super) struct Plan<'a> {
    submitted: &'a Lab,
    /// The lab of the course that it is.
    lab: Option<&'a Lab>,
    /// The cells to run, with what nbgrader's metadata says of them.
    cells: Vec<(&'a Value, Option<Mark>)>,
}

/// What a notebook came to.
#[derive(Debug, Serialize)]
pub(super) struct Grade {
    notebook: String,
    /// The lab of the course that the notebook is, by its file; none where it is of no lab that is known.
    lab: Option<String>,
    points: f64,
    of: f64,
    checks: Vec<Checked>,
}

/// What a check came to.
#[derive(Debug, Serialize)]
struct Checked {
    id: String,
    /// None where a person has to grade.
    points: Option<f64>,
    of: f64,
    /// Why points are missing.
    reason: Option<String>,
    /// Whether the notebook has other text in the place of the check, which was not run.
    was_changed: bool,
}

impl<'a> Plan<'a> {
    /// What of `submitted` is to be run, with the checks of the `lab` that it is.
    pub(super) fn of(submitted: &'a Lab, lab: Option<&'a Lab>) -> Self {
        let cells = submitted.cells().iter().filter(|cell| is_code(cell)).map(|cell| (cell, mark(cell)));
        Self { submitted, lab, cells: cells.collect() }
    }

    /// The code of each cell to run.
    pub(super) fn codes(&self) -> Vec<String> {
        let locked = |cell: &&Value| mark(cell).is_some_and(|mark| mark.locked);
        let own = |mark: &Mark| self.lab?.cell(&mark.grade_id).filter(locked);
        self.cells.iter().map(|(cell, mark)| source(mark.as_ref().and_then(own).unwrap_or(cell))).collect()
    }

    /// The points, with what each cell `ran` to.
    pub(super) fn grade(&self, ran: &[Option<Failure>]) -> Grade {
        let checks = self.lab.unwrap_or(self.submitted).checks();
        let checks: Vec<Checked> = checks.map(|(check, cell)| self.checked(check, cell, ran)).collect();
        let (points, of) = (
            checks.iter().filter_map(|check| check.points).sum(),
            checks.iter().filter(|check| check.points.is_some()).map(|check| check.of).sum(),
        );
        let (notebook, lab) = (self.submitted.name.clone(), self.lab.map(|lab| lab.name.clone()));
        Grade { notebook, lab, points, of, checks }
    }

    /// What a check came to, whose cell in the lab this is.
    fn checked(&self, check: Mark, cell: &Value, ran: &[Option<Failure>]) -> Checked {
        let is = |mark: &Option<Mark>, wanted: &dyn Fn(&Mark) -> bool| mark.as_ref().is_some_and(wanted);
        let at = self.cells.iter().position(|(_, mark)| is(mark, &|mark| mark.grade_id == check.grade_id));
        let task = at.and_then(|at| self.cells[..at].iter().rposition(|(_, mark)| is(mark, &|mark| mark.solution)));
        let failed = |at: usize| ran.get(at).and_then(Option::as_ref).map(Failure::reason);
        let is_for_a_person = check.solution || !is_code(cell);
        let reason = match at {
            _ if is_for_a_person => Some("a person grades this".to_owned()),
            None => Some("the notebook does not have this check any more".to_owned()),
            // What is wrong with the task comes before what that does to the check.
            Some(at) => failed(at).map(|own| match task.and_then(failed) {
                Some(task) => format!("the task's cell fails: {task}"),
                None => own,
            }),
        };
        let points = if reason.is_some() { 0.0 } else { check.points };
        let points = Some(points).filter(|_| !is_for_a_person);
        let was_changed = at.is_some_and(|at| check.locked && source(self.cells[at].0) != source(cell));
        Checked { id: check.grade_id, points, of: check.points, reason, was_changed }
    }
}

impl Grade {
    /// Whether no point is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.points >= self.of
    }

    /// The checks and their points.
    pub(super) fn table(&self) -> Table {
        let row = |check: &Checked| {
            let changed = if check.was_changed { "the check was changed, and the course's was run" } else { "" };
            let reason = check.reason.iter().flat_map(|reason| reason.lines().map(str::trim));
            let reason = reason.collect::<Vec<_>>().join(" ");
            let words: Vec<&str> = [&*reason, changed].into_iter().filter(|words| !words.is_empty()).collect();
            let points = check.points.map_or_else(|| "–".to_owned(), |points| points.to_string());
            let cells = [points, check.of.to_string(), words.join("; ")].map(Cell::Text).into();
            TableRow { id: None, label: check.id.clone(), cells }
        };
        let columns = [(Role::Label, "check"), (Role::Fact, "points"), (Role::Fact, "of"), (Role::Fact, "why")];
        Table {
            title: format!("{}: {} of {} points", self.notebook, self.points, self.of),
            columns: columns.map(|(role, heading)| Column::new(role, heading)).into(),
            groups: vec![TableGroup { label: None, rows: self.checks.iter().map(row).collect() }],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cell(source: &str, nbgrader: &Value) -> Value {
        json!({"cell_type": "code", "id": "a", "metadata": {"nbgrader": nbgrader}, "source": [source], "outputs": []})
    }

    fn lab(name: &str, cells: &[Value]) -> Lab {
        Lab::parse(name, &json!({"nbformat": 4, "cells": cells}).to_string()).unwrap()
    }

    fn task(answer: &str) -> Value {
        cell(answer, &json!({"grade": false, "grade_id": "task", "locked": false, "solution": true}))
    }

    fn check(source: &str, id: &str, points: u32) -> Value {
        cell(source, &json!({"grade": true, "grade_id": id, "locked": true, "points": points, "solution": false}))
    }

    fn own() -> Lab {
        lab("own", &[task("todo!()"), check("assert!(x)", "one", 2), check("assert!(y)", "two", 3)])
    }

    #[test]
    fn a_check_that_runs_gives_its_points_and_one_that_fails_says_why() {
        let submitted =
            lab("mine", &[task("let x = true;"), check("assert!(x)", "one", 2), check("assert!(y)", "two", 3)]);
        let own = own();
        let plan = Plan::of(&submitted, Some(&own));
        assert_eq!(plan.codes(), ["let x = true;", "assert!(x)", "assert!(y)"]);
        let grade = plan.grade(&[None, None, Some(Failure::new("Panic", "y is wrong\nmore"))]);
        assert_eq!((grade.points, grade.of, grade.is_whole()), (2.0, 5.0, false));
        assert_eq!(grade.checks[1].reason.as_deref(), Some("y is wrong\nmore"));
        let table = grade.table().to_console();
        assert!(table.starts_with("mine: 2 of 5 points\n") && table.contains("y is wrong more"), "{table}");
    }

    #[test]
    fn a_task_that_fails_is_the_reason_of_its_checks() {
        let submitted = own();
        let failures = [("CompileError", "expected `;`"), ("CompileError", "no x"), ("CompileError", "no y")];
        let ran: Vec<_> = failures.map(|(kind, message)| Some(Failure::new(kind, message))).into();
        let grade = Plan::of(&submitted, None).grade(&ran);
        assert!(
            grade.checks.iter().all(|check| {
                check.reason.as_deref() == Some("the task's cell fails: does not compile: expected `;`")
            })
        );
        assert_eq!((grade.points, grade.lab), (0.0, None));
    }

    #[test]
    fn the_checks_of_the_course_are_run_whatever_the_notebook_holds() {
        let submitted = lab("mine", &[task("let x = true;"), check("assert!(true)", "one", 90)]);
        let known = [own()];
        let plan = Plan::of(&submitted, submitted.nearest(&known));
        assert_eq!(plan.codes(), ["let x = true;", "assert!(x)"]);
        let grade = plan.grade(&[None, None]);
        assert_eq!((grade.points, grade.of), (2.0, 5.0));
        assert!(grade.checks[0].was_changed && !grade.checks[1].was_changed);
        assert!(grade.checks[1].reason.as_ref().unwrap().contains("does not have this check"));
        assert_eq!(grade.lab.as_deref(), Some("own"));
    }

    #[test]
    fn an_answer_that_gives_points_itself_is_for_a_person() {
        let essay = json!({"cell_type": "markdown", "id": "e", "source": "words", "metadata": {"nbgrader":
            {"grade": true, "grade_id": "essay", "locked": false, "points": 4, "solution": true}}});
        let submitted = lab("mine", &[task("1"), check("2", "one", 1), essay]);
        let grade = Plan::of(&submitted, None).grade(&[None, None]);
        assert_eq!((grade.points, grade.of, grade.checks[1].points), (1.0, 1.0, None));
    }

    #[test]
    fn a_notebook_without_checks_is_no_lab() {
        let text = json!({"nbformat": 4, "cells": [cell("1", &Value::Null)]}).to_string();
        assert!(Lab::parse("mine", &text).is_err());
        assert!(Lab::parse("mine", "{}").is_err() && Lab::parse("mine", "[").is_err());
    }
}
