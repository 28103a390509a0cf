//! Figures: what they draw is there.

use super::Check;
use super::at::At;
use super::table::{Several, in_lines};
use crate::document::{DocumentTable, Lines, Matrix, MatrixColumn, Panel, PanelSeries, Shows};
use crate::error::FileError;
use crate::results::{Parameter, Parameters};
use crate::units::Unit;

/// Finds the first contradiction in the figures of a document.
pub(super) fn check(top: &At<'_>) -> Check {
    for (at, figure) in top.each("figures", &top.document.figures) {
        let at = at.about(format!("figure `{}` ", figure.id));
        at.each("panels", &figure.panels).try_for_each(|(at, panel)| check_panel(&at, panel))?;
    }
    Ok(())
}

fn check_panel(at: &At<'_>, panel: &Panel) -> Check {
    let names = &at.document.names;
    let draws_rows = !panel.table.is_empty() || !panel.bars.is_empty() || panel.lines.is_some();
    let kinds = [
        ("timeline", panel.timeline.as_ref().map(|scenario| format!("the timeline `{scenario}`"))),
        ("roofline", panel.roofline.then(|| "a roofline".to_owned())),
        ("matrix", panel.matrix.as_ref().map(|matrix| format!("the matrix of `{}`", matrix.id))),
    ];
    let drawn: Vec<(&str, String)> = kinds.into_iter().filter_map(|(key, what)| Some((key, what?))).collect();
    let Some((key, what)) = drawn.first() else { return check_rows(at, panel) };
    if draws_rows || drawn.len() > 1 {
        return at.key(key).refuse(format!("draws {what} and something else"));
    }
    match (&panel.timeline, &panel.matrix) {
        (Some(scenario), _) => {
            let what = format!("draws the timeline of a row `{scenario}`, which no experiment has");
            at.key("timeline").known(scenario, names.rows.ids(), what)
        }
        (_, Some(matrix)) => check_matrix(&at.key("matrix"), matrix),
        _ => Ok(()),
    }
}

/// A panel draws the rows of a table in one way, on one axis.
fn check_rows(at: &At<'_>, panel: &Panel) -> Check {
    let tables = &at.document.tables;
    let what = format!("draws table `{}`, which there is not", panel.table);
    at.key("table").known(&panel.table, tables.iter().map(|table| table.id.as_str()), what)?;
    let Some(table) = at.document.table(&panel.table) else { return Ok(()) };
    let has_lines = panel.lines.as_ref().is_some_and(|lines| !lines.series.is_empty());
    if panel.bars.is_empty() != has_lines {
        let what = format!("draws table `{}` neither as bars nor as lines, or in both ways", table.id);
        return at.key("table").refuse(what);
    }
    let bars = &panel.bars;
    if let Some(case) = &panel.case {
        let what = format!("draws the case `{case}` of table `{}`, which there is not", table.id);
        let cases = if bars.is_empty() { &[] } else { &table.cases[..] };
        at.key("case").known(case, cases.iter().map(|case| case.label.as_str()), what)?;
    }
    at.key("bars").once(bars, None, |place| format!("draws `{}` twice", bars[place]))?;
    let mut units = at.each("bars", bars).map(|(at, id)| unit(&at, table, id)).collect::<Result<Vec<Unit>, _>>()?;
    if let Some(lines) = &panel.lines {
        let at = at.key("lines");
        units.extend(check_lines(&at, table, lines)?);
        one_each(&at.key("series"), in_lines(at.document, table, lines))?;
    }
    if units.iter().any(|unit| *unit != units[0]) {
        return at.key("table").refuse(format!("draws rows of table `{}` whose units differ on one axis", table.id));
    }
    Ok(())
}

/// Refuses what stands for several measurements in a list.
fn one_each(list: &At<'_>, several: Option<Several>) -> Check {
    let Some((place, several)) = several else { return Ok(()) };
    let hint = "; name a parameter, by `select`".to_owned();
    list.item(place).key("id").refuse_for(format!("draws a row of which {several}"), hint)
}

/// A matrix draws rows that there are, of yes and no, by parameters that they have.
fn check_matrix(at: &At<'_>, matrix: &Matrix) -> Check {
    let rows = &at.document.names.rows;
    let named = |at: &At<'_>, id: &str| {
        at.key("id").known(id, rows.ids(), format!("draws `{id}`, which no experiment has"))?;
        Ok(rows.get(id).map(|spec| spec.unit))
    };
    let is_share = |at: &At<'_>, id: &str| match named(at, id)? {
        Some(Unit::Ratio) => Ok(()),
        _ => at.key("id").refuse(format!("draws `{id}`, which is no share of yes, as a matrix")),
    };
    is_share(at, &matrix.id)?;
    let selects = |at: &At<'_>, id: &str, key: &str, select: &Parameters| {
        at.key(key).parameters(&[id], select, &format!("selects what is not there: row `{id}` has not"))
    };
    selects(at, &matrix.id, "select", &matrix.select)?;
    let across = matrix.across.iter().map(|name| (at.key("across"), name));
    for (at, name) in at.each("rows", &matrix.rows).chain(across) {
        at.parameter(&[&matrix.id], name, format!("names `{name}`, which is no parameter of `{}`", matrix.id))?;
    }
    for (at, column) in at.each("columns", &matrix.columns) {
        let id = column.id.as_ref().unwrap_or(&matrix.id);
        is_share(&at, id)?;
        let known = rows.parameters(&[id]);
        let mut of_rows = matrix.rows.iter().chain(&matrix.across);
        if let Some(name) = of_rows.find(|name| !known.contains_key(name.as_str())) {
            return at.key("id").refuse(format!("has a column of `{id}`, which has no parameter `{name}`"));
        }
        match (&matrix.across, &column.value) {
            (Some(across), Some(value)) => {
                let select = Parameters::from([(across.clone(), value.clone())]);
                if let Some(unknown) = rows.unknown_parameter(&[id], &select) {
                    let what = format!("has a column for `{across}` that is `{value}`, which no row has");
                    return at.key("value").refuse_for(what, unknown.hint);
                }
            }
            (Some(across), None) => return at.refuse(format!("has a column without a `value` of `{across}`")),
            (None, Some(value)) => {
                let what = format!("has a column for `{value}`, and no parameter in `across` that has the value");
                return at.key("value").refuse(what);
            }
            (None, None) => {}
        }
    }
    let told_apart = |column: &MatrixColumn| (column.id.as_ref().unwrap_or(&matrix.id).clone(), column.value.clone());
    let columns: Vec<_> = matrix.columns.iter().map(told_apart).collect();
    at.key("columns").once(&columns, None, |place| {
        let (id, value) = columns[place].clone();
        format!("has two columns for `{}`", value.map_or(id, |value| value.to_string()))
    })?;
    for (at, id) in at.each("data", &matrix.data) {
        if named(&at, id)? != Some(Unit::Seconds) {
            return at.refuse(format!("has `{id}` among its times, which is no time"));
        }
    }
    Ok(())
}

/// The unit of a row that is drawn.
fn unit(at: &At<'_>, table: &DocumentTable, id: &str) -> Result<Unit, FileError> {
    let what = format!("draws `{id}`, which table `{}` does not hold", table.id);
    at.known(id, table.rows.iter().map(|row| row.id.as_str()), what)?;
    Ok(table.row(id).map_or(Unit::Seconds, |row| row.unit))
}

/// Finds what is wrong with lines; the units of the rows that they draw.
fn check_lines(at: &At<'_>, table: &DocumentTable, lines: &Lines) -> Result<Vec<Unit>, FileError> {
    let drawn: Vec<&str> = lines.series.iter().map(|series| series.id.as_str()).collect();
    let mut units = Vec::new();
    for (at, PanelSeries { id, select, predicts, .. }) in at.each("series", &lines.series) {
        units.push(unit(&at.key("id"), table, id)?);
        at.key("select").parameters(&[id], select, &format!("selects what is not there: row `{id}` has not"))?;
        if let Some(other) = predicts {
            let what = format!("predicts `{other}`, which it does not draw");
            at.key("predicts").known(other, drawn.iter().copied(), what)?;
        }
    }
    let fits = |unit: &Unit| match lines.shows {
        Shows::Value => true,
        Shows::Excess => lines.unit == Some(*unit),
        Shows::Rate => *unit == Unit::Seconds,
        Shows::Throughput => *unit == Unit::Seconds && lines.unit == Some(Unit::Bytes),
    };
    let x = lines.x.as_str();
    if let Some(unit) = units.iter().find(|unit| !fits(unit)) {
        return at.key("shows").refuse(match lines.shows {
            Shows::Rate => format!("draws how many there are in a second of values in {unit:?}"),
            Shows::Throughput => format!("draws `{x}` by values in {unit:?}, which is no throughput of bytes"),
            _ => format!("draws by how much values in {unit:?} exceed `{x}`, whose unit is another"),
        });
    }
    let at = at.key("x");
    at.parameter(&drawn, x, format!("draws lines over `{x}`, which is no parameter of its rows"))?;
    let known = at.document.names.rows.parameters(&drawn);
    match known.get(x).is_some_and(|values| values.iter().any(|value| Parameter::number(value).is_some())) {
        true => Ok(units),
        false => at.refuse(format!("draws lines over `{x}`, whose values are no numbers")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::error;

    #[test]
    fn a_plot_of_a_row_that_there_is_not_is_refused() {
        let tail = "figures: [{id: f, title: F, caption: C, panels: [{table: t, bars: [d.z]}]}]\n";
        assert!(error(tail).contains("figure `f` draws `d.z`, which table `t` does not hold"));
    }

    #[test]
    fn rows_of_different_units_share_no_axis() {
        let tail = "      - {id: d.share}\n\
                    figures: [{id: f, title: F, caption: C, panels: [{table: t, bars: [d.a, d.share]}]}]\n";
        assert!(error(tail).contains("figure `f` draws rows of table `t` whose units differ"));
    }

    #[test]
    fn a_panel_with_a_timeline_holds_nothing_else() {
        let figure = |panel: &str| format!("figures: [{{id: f, title: F, caption: C, panels: [{{{panel}}}]}}]\n");
        let message = error(&figure("timeline: d.a, table: t, bars: [d.a]"));
        assert!(message.contains("the timeline `d.a` and something else"), "{message}");
    }

    #[test]
    fn a_matrix_is_alone_and_of_shares_by_parameters_that_they_have() {
        let rest = "rows: [], across: held, columns: []";
        let error_of = |id: &str, beside: &str| {
            let panel = format!("{{matrix: {{id: {id}, {rest}}}{beside}}}");
            error(&format!("figures: [{{id: f, title: F, caption: C, panels: [{panel}]}}]\n"))
        };
        for (id, beside, says) in [
            ("d.a", "", "figure `f` draws `d.a`, which is no share of yes, as a matrix"),
            ("d.z", "", "figure `f` draws `d.z`, which no experiment has"),
            ("d.share", "", "figure `f` names `held`, which is no parameter of `d.share`"),
            ("d.share", ", table: t, bars: [d.a]", "figure `f` draws the matrix of `d.share` and something else"),
        ] {
            let message = error_of(id, beside);
            assert!(message.contains(says), "{message}");
        }
    }

    /// Each with a mark before what is wrong in it.
    #[test]
    fn a_wrong_name_in_a_matrix_has_its_own_place() {
        for (matrix, says) in [
            ("{id: d.share, rows: [dtype, ^siez], across: size, columns: []", "did you mean `size`?"),
            ("{id: d.share, rows: [dtype], across: ^siez, columns: []", "did you mean `size`?"),
            ("{id: d.share, select: {^dtyp: fp16}, rows: [], across: size, columns: []", "did you mean `dtype`?"),
            ("{id: d.share, select: {dtype: ^fp17}, rows: [], across: size, columns: []", "did you mean `fp16`?"),
            ("{id: d.share, rows: [], across: size, columns: [{value: ^9, name: N}]", "the only value is 8"),
        ] {
            let line = format!("figures: [{{id: f, title: F, caption: C, panels: [{{matrix: {matrix}}}}}]}}]\n");
            let message = error(&line.replace('^', ""));
            let column = 1 + line.find('^').unwrap();
            assert!(
                message.starts_with(&format!("d.yaml:14:{column}: ")) && message.contains(says),
                "{matrix}: {message}"
            );
        }
        let both = "timeline: d.a, matrix: {id: d.share, rows: [], across: size, columns: []}";
        let message = error(&format!("figures: [{{id: f, title: F, caption: C, panels: [{{{both}}}]}}]\n"));
        assert!(message.contains("the timeline `d.a` and something else"), "{message}");
    }

    #[test]
    fn a_panel_draws_a_case_that_there_is() {
        let message = error("figures: [{id: f, title: F, caption: C, panels: [{table: t, bars: [d.a], case: x}]}]\n");
        assert!(message.contains("draws the case `x` of table `t`, which there is not"), "{message}");
    }

    #[test]
    fn a_panel_is_bars_or_lines() {
        let tail = "figures: [{id: f, title: F, caption: C, panels: [{table: t}]}]\n";
        assert!(error(tail).contains("neither as bars nor as lines"));
    }
}
