//! Figures: what they draw is there.

use super::single::{self, Several};
use super::{Source, twice};
use crate::document::{Document, DocumentTable, Lines, Matrix, MatrixColumn, MatrixTime, Panel, PanelSeries, Shows};
use crate::error::FileError;
use crate::present::StackPlot;
use crate::results::{Catalog, Parameter, Parameters, nearest};
use crate::units::Unit;
use crate::yaml::Way;

/// Finds the first contradiction in the figures of a document.
pub(super) fn check(document: &Document, source: &Source<'_>) -> Result<(), FileError> {
    for (place, figure) in document.figures.iter().enumerate() {
        let way = Way::default().key("figures").item(place);
        let wrong =
            |way: &Way, what: String, hint: String| source.error(way, format!("figure `{}` {what}", figure.id), hint);
        for (place, panel) in figure.panels.iter().enumerate() {
            check_panel(document, panel, &way.key("panels").item(place), &wrong)?;
        }
    }
    Ok(())
}

/// Says what is wrong with a figure, where, and what may have been meant.
type Wrong<'a> = &'a dyn Fn(&Way, String, String) -> FileError;

fn check_panel(document: &Document, panel: &Panel, way: &Way, wrong: Wrong<'_>) -> Result<(), FileError> {
    let rows = &document.names.rows;
    if let Some(chapter) = panel.chapter.as_ref().filter(|chapter| !document.names.chapters.contains(*chapter)) {
        let hint = nearest(chapter, document.names.chapters.iter().map(String::as_str));
        return Err(wrong(&way.key("chapter"), format!("leads to a chapter `{chapter}`, which there is not"), hint));
    }
    if let Some(scenario) = &panel.timeline {
        if draws_rows(panel) || panel.roofline || panel.matrix.is_some() {
            let what = format!("draws the timeline `{scenario}` and something else");
            return Err(wrong(&way.key("timeline"), what, String::new()));
        }
        if rows.get(scenario).is_none() {
            let what = format!("draws the timeline of a row `{scenario}`, which no experiment has");
            return Err(wrong(&way.key("timeline"), what, nearest(scenario, rows.ids())));
        }
        return Ok(());
    }
    if panel.roofline {
        let what = || "draws a roofline and something else".to_owned();
        let more = draws_rows(panel) || panel.matrix.is_some();
        return if more { Err(wrong(&way.key("roofline"), what(), String::new())) } else { Ok(()) };
    }
    if let Some(matrix) = &panel.matrix {
        if draws_rows(panel) {
            let what = format!("draws the matrix of `{}` and something else", matrix.id);
            return Err(wrong(&way.key("matrix"), what, String::new()));
        }
        check_matrix(rows, matrix, &way.key("matrix"), wrong)?;
        let way = way.key("matrix");
        for (key, times) in [("beside", &matrix.beside), ("below", &matrix.below)] {
            one_each(single::in_matrix(document, matrix, times), &way.key(key), wrong)?;
        }
        return Ok(());
    }
    let Some(table) = document.table(&panel.table) else {
        let hint = nearest(&panel.table, document.tables.iter().map(|table| table.id.as_str()));
        return Err(wrong(&way.key("table"), format!("draws table `{}`, which there is not", panel.table), hint));
    };
    let ways = [
        !panel.bars.is_empty(),
        panel.lines.as_ref().is_some_and(|lines| !lines.series.is_empty()),
        panel.stack.as_ref().is_some_and(|stack| !stack.parts.is_empty()),
    ];
    if ways.into_iter().filter(|way| *way).count() != 1 {
        let what = format!("draws table `{}` neither as bars nor as lines nor stacked, or in several ways", table.id);
        return Err(wrong(&way.key("table"), what, String::new()));
    }
    let mut units: Vec<Unit> = Vec::new();
    if let Some(place) = twice(panel.bars.iter()) {
        let what = format!("draws `{}` twice", panel.bars[place]);
        return Err(wrong(&way.key("bars").item(place), what, String::new()));
    }
    for (place, id) in panel.bars.iter().enumerate() {
        units.push(unit(table, id, &way.key("bars").item(place), wrong)?);
    }
    if let Some(stack) = &panel.stack {
        let way = way.key("stack");
        if stack.parts.len() > StackPlot::MOST_PARTS {
            let what =
                format!("draws a bar of {} parts, and {} can be told apart", stack.parts.len(), StackPlot::MOST_PARTS);
            return Err(wrong(&way.key("parts"), what, String::new()));
        }
        if let Some(place) = twice(stack.parts.iter()) {
            let what = format!("draws `{}` twice", stack.parts[place]);
            return Err(wrong(&way.key("parts").item(place), what, String::new()));
        }
        for (place, id) in stack.parts.iter().enumerate() {
            units.push(unit(table, id, &way.key("parts").item(place), wrong)?);
        }
        units.push(unit(table, &stack.whole, &way.key("whole"), wrong)?);
        units.push(unit(table, &stack.error, &way.key("error"), wrong)?);
    }
    if let Some(lines) = &panel.lines {
        units.extend(check_lines(document, table, lines, &way.key("lines"), wrong)?);
        one_each(single::in_lines(document, table, lines), &way.key("lines").key("series"), wrong)?;
    }
    if units.iter().any(|unit| *unit != units[0]) {
        let what = format!("draws rows of table `{}` whose units differ on one axis", table.id);
        return Err(wrong(&way.key("table"), what, String::new()));
    }
    Ok(())
}

/// Refuses what stands for several measurements, in the list at the end of a way.
fn one_each(several: Option<Several>, list: &Way, wrong: Wrong<'_>) -> Result<(), FileError> {
    let refused = |(place, several): Several| {
        let hint = "; name a parameter, by `select`".to_owned();
        wrong(&list.item(place).key("id"), format!("draws a row of which {several}"), hint)
    };
    several.map_or(Ok(()), |several| Err(refused(several)))
}

fn draws_rows(panel: &Panel) -> bool {
    !panel.table.is_empty() || !panel.bars.is_empty() || panel.lines.is_some() || panel.stack.is_some()
}

/// Finds what is wrong with a matrix: it draws rows that there are, of yes and no, by parameters that they have.
fn check_matrix(rows: &Catalog, matrix: &Matrix, way: &Way, wrong: Wrong<'_>) -> Result<(), FileError> {
    let named = |id: &str, way: &Way| {
        let what = || format!("draws `{id}`, which no experiment has");
        rows.get(id).ok_or_else(|| wrong(&way.key("id"), what(), nearest(id, rows.ids())))
    };
    let is_share = |id: &str, way: &Way| match named(id, way)?.unit {
        Unit::Ratio => Ok(()),
        _ => Err(wrong(&way.key("id"), format!("draws `{id}`, which is no share of yes, as a matrix"), String::new())),
    };
    is_share(&matrix.id, way)?;
    let selects = |id: &str, select: &Parameters, way: &Way| match rows.unknown_parameter(&[id], select) {
        Some(unknown) => {
            let (name, way) = (&unknown.name, way.key("select"));
            let (way, what) = match &unknown.value {
                Some(value) => (way.key(name), format!("selects `{name}` that is `{value}`, which no row `{id}` has")),
                None => (way.name(name), format!("selects by `{name}`, which is no parameter of `{id}`")),
            };
            Err(wrong(&way, what, unknown.hint))
        }
        None => Ok(()),
    };
    selects(&matrix.id, &matrix.select, way)?;
    let known = rows.parameters(&[&matrix.id]);
    let rows_of = matrix.rows.iter().enumerate().map(|(place, name)| (way.key("rows").item(place), name));
    let mut parameters = rows_of.chain(matrix.across.iter().map(|name| (way.key("across"), name)));
    if let Some((way, name)) = parameters.find(|(_, name)| !known.contains_key(name.as_str())) {
        let what = format!("names `{name}`, which is no parameter of `{}`", matrix.id);
        return Err(wrong(&way, what, nearest(name, known.keys().copied())));
    }
    for (place, column) in matrix.columns.iter().enumerate() {
        let way = way.key("columns").item(place);
        let id = column.id.as_ref().unwrap_or(&matrix.id);
        is_share(id, &way)?;
        let of_rows =
            matrix.rows.iter().chain(&matrix.across).find(|name| !rows.parameters(&[id]).contains_key(name.as_str()));
        if let Some(name) = of_rows {
            let what = format!("has a column of `{id}`, which has no parameter `{name}`");
            return Err(wrong(&way.key("id"), what, String::new()));
        }
        match (&matrix.across, &column.value) {
            (Some(across), Some(value)) => {
                let select = Parameters::from([(across.clone(), value.clone())]);
                if let Some(unknown) = rows.unknown_parameter(&[id], &select) {
                    let what = format!("has a column for `{across}` that is `{value}`, which no row has");
                    return Err(wrong(&way.key("value"), what, unknown.hint));
                }
            }
            (Some(across), None) => {
                return Err(wrong(&way, format!("has a column without a `value` of `{across}`"), String::new()));
            }
            (None, Some(value)) => {
                let what = format!("has a column for `{value}`, and no parameter in `across` that has the value");
                return Err(wrong(&way.key("value"), what, String::new()));
            }
            (None, None) => {}
        }
    }
    let told_apart =
        |column: &MatrixColumn| (column.id.clone().unwrap_or_else(|| matrix.id.clone()), column.value.clone());
    if let Some(place) = twice(matrix.columns.iter().map(told_apart)) {
        let (id, value) = told_apart(&matrix.columns[place]);
        let what = format!("has two columns for `{}`", value.map_or(id, |value| value.to_string()));
        return Err(wrong(&way.key("columns").item(place), what, String::new()));
    }
    let placed = |key: &str, times: &[MatrixTime]| {
        times.iter().enumerate().try_for_each(|(place, time)| {
            let way = way.key(key).item(place);
            if named(&time.id, &way)?.unit != Unit::Seconds {
                let what = format!("sets `{}` {key} its cells, which is no time", time.id);
                return Err(wrong(&way.key("id"), what, String::new()));
            }
            selects(&time.id, &matrix.select, &way)?;
            selects(&time.id, &time.select, &way)?;
            selects(&time.id, &time.prefer, &way)
        })
    };
    placed("beside", &matrix.beside)?;
    placed("below", &matrix.below)?;
    Ok(())
}

/// The unit of a row that is drawn.
fn unit(table: &DocumentTable, id: &str, way: &Way, wrong: Wrong<'_>) -> Result<Unit, FileError> {
    let unknown = || {
        let hint = nearest(id, table.rows.iter().map(|row| row.id.as_str()));
        wrong(way, format!("draws `{id}`, which table `{}` does not hold", table.id), hint)
    };
    table.row(id).map(|row| row.unit).ok_or_else(unknown)
}

/// Finds what is wrong with lines; the units of the rows that they draw.
fn check_lines(
    document: &Document,
    table: &DocumentTable,
    lines: &Lines,
    way: &Way,
    wrong: Wrong<'_>,
) -> Result<Vec<Unit>, FileError> {
    let rows = &document.names.rows;
    let mut units = Vec::new();
    for (place, PanelSeries { id, select, predicts, .. }) in lines.series.iter().enumerate() {
        let way = way.key("series").item(place);
        units.push(unit(table, id, &way.key("id"), wrong)?);
        if let Some(unknown) = rows.unknown_parameter(&[id], select) {
            let (way, what) = match &unknown.value {
                Some(value) => (way.key("select").key(&unknown.name), format!("`{}` that is `{value}`", unknown.name)),
                None => (way.key("select").name(&unknown.name), format!("parameter `{}`", unknown.name)),
            };
            return Err(wrong(&way, format!("selects what is not there: row `{id}` has no {what}"), unknown.hint));
        }
        let drawn = || lines.series.iter().map(|series| series.id.as_str());
        if let Some(other) = predicts.as_ref().filter(|other| !drawn().any(|id| id == other.as_str())) {
            let what = format!("predicts `{other}`, which it does not draw");
            return Err(wrong(&way.key("predicts"), what, nearest(other, drawn())));
        }
    }
    let fits = |unit: &Unit| match lines.shows {
        Shows::Value => true,
        Shows::Excess => lines.unit == Some(*unit),
        Shows::Rate => *unit == Unit::Seconds,
        Shows::Throughput => *unit == Unit::Seconds && lines.unit == Some(Unit::Bytes),
    };
    if let Some(unit) = units.iter().find(|unit| !fits(unit)) {
        let what = match lines.shows {
            Shows::Rate => format!("draws how many there are in a second of values in {unit:?}"),
            Shows::Throughput => format!("draws `{}` by values in {unit:?}, which is no throughput of bytes", lines.x),
            _ => format!("draws by how much values in {unit:?} exceed `{}`, whose unit is another", lines.x),
        };
        return Err(wrong(&way.key("shows"), what, String::new()));
    }
    let ids: Vec<&str> = lines.series.iter().map(|series| series.id.as_str()).collect();
    let known = rows.parameters(&ids);
    let x = lines.x.as_str();
    match known.get(x) {
        None => {
            let what = format!("draws lines over `{x}`, which is no parameter of its rows");
            Err(wrong(&way.key("x"), what, nearest(x, known.keys().copied())))
        }
        Some(values) if !values.iter().any(|value| Parameter::number(value).is_some()) => {
            let what = format!("draws lines over `{x}`, whose values are no numbers");
            Err(wrong(&way.key("x"), what, String::new()))
        }
        Some(_) => Ok(units),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Document;
    use super::super::tests::{HEAD, error, two_sizes};

    #[test]
    fn a_stack_is_of_rows_of_its_table_that_can_be_told_apart() {
        let error = |stack: &str| {
            let panel = format!("{{table: t, stack: {stack}}}");
            let head = HEAD.replace(", published: {fp16: 14.0e-6}", ", published_with: {size: 16}");
            let text = format!("{head}figures: [{{id: f, title: F, caption: C, panels: [{panel}]}}]\n");
            Document::parse("d.yaml", &text, &two_sizes()).unwrap_err().to_string()
        };
        for (stack, says) in [
            ("{parts: [d.z], whole: d.a, error: d.a}", "draws `d.z`, which table `t` does not hold"),
            ("{parts: [d.a], whole: d.z, error: d.a}", "draws `d.z`, which table `t` does not hold"),
            ("{parts: [d.a, d.a, d.a, d.a, d.a], whole: d.a, error: d.a}", "a bar of 5 parts, and 4 can be told apart"),
            ("{parts: [], whole: d.a, error: d.a}", "neither as bars nor as lines nor stacked"),
            ("{parts: [d.a, d.a], whole: d.a, error: d.a}", "draws `d.a` twice"),
        ] {
            let message = error(stack);
            assert!(message.contains(says), "{message}");
        }
    }

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
        let rest = "rows: [], across: held, columns: [], legend: [a, b, c]";
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
            let line = format!(
                "figures: [{{id: f, title: F, caption: C, panels: [{{matrix: {matrix}, legend: [a, b, c]}}}}]}}]\n"
            );
            let message = error(&line.replace('^', ""));
            let column = 1 + line.find('^').unwrap();
            assert!(
                message.starts_with(&format!("d.yaml:14:{column}: ")) && message.contains(says),
                "{matrix}: {message}"
            );
        }
        let both = "timeline: d.a, matrix: {id: d.share, rows: [], across: size, columns: [], legend: [a, b, c]}";
        let message = error(&format!("figures: [{{id: f, title: F, caption: C, panels: [{{{both}}}]}}]\n"));
        assert!(message.contains("the timeline `d.a` and something else"), "{message}");
    }

    #[test]
    fn a_panel_leads_to_a_chapter_that_there_is() {
        let message =
            error("figures: [{id: f, title: F, caption: C, panels: [{table: t, bars: [d.a], chapter: x}]}]\n");
        assert!(message.contains("figure `f` leads to a chapter `x`, which there is not"), "{message}");
    }

    #[test]
    fn a_panel_is_bars_or_lines() {
        let tail = "figures: [{id: f, title: F, caption: C, panels: [{table: t}]}]\n";
        assert!(error(tail).contains("neither as bars nor as lines"));
    }
}
