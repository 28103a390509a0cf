use super::*;

fn plot() -> LinePlot {
    let point = |x: f64, value: f64| Point {
        x,
        value: (value, Some((value * 0.9, value * 1.1))),
        text: Unit::Seconds.format(value, 3),
    };
    let line = |label: &str, role, factor: f64| Line {
        label: label.to_owned(),
        role,
        points: [1.0, 10.0, 100.0].map(|x| point(x, x * factor)).to_vec(),
        missing: vec![],
    };
    LinePlot {
        title: "Title".to_owned(),
        machine: "M".to_owned(),
        x: "operations".to_owned(),
        x_unit: None,
        x_spacing: Spacing::Log,
        x_ticks: Ticks::Places,
        unit: Unit::Seconds,
        y_spacing: Spacing::Log,
        lines: vec![
            line("queued", LineRole::Measured, 2e-6),
            line("serial", LineRole::Measured, 9e-6),
            line("model", LineRole::Prediction(0), 2.1e-6),
        ],
    }
}

#[test]
fn every_point_has_a_mark_and_every_line_its_legend() {
    let svg = plot().to_svg("p");
    // Three points and the legend, for the discs of the measured line and the circles of its prediction.
    assert_eq!(svg.matches("<circle").count(), 8, "{svg}");
    assert_eq!(svg.matches("<polygon").count(), 4, "{svg}");
    for text in ["queued", "serial", "model", "operations"] {
        assert!(svg.contains(text), "{text} is missing in {svg}");
    }
}

#[test]
fn six_lines_have_six_colours_and_six_marks() {
    let mut plot = plot();
    let line = plot.lines[0].clone();
    plot.lines = (0..6).map(|number| Line { label: format!("line {number}"), ..line.clone() }).collect();
    let svg = plot.to_svg("p");
    let lines = ["first", "second", "third", "fourth", "fifth", "sixth"];
    for class in lines.map(|name| format!("class=\"plot-{name}\" stroke-width=\"2\"")) {
        assert_eq!(svg.matches(&class).count(), 2, "the line and its legend: {class} in {svg}");
    }
    // The marks of the legend, each from its middle.
    let marks = svg.lines().filter(|line| line.starts_with("<polygon") || line.starts_with("<circle"));
    let shape = |mark: &str| {
        let points = mark.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let pairs = points.split(' ').filter_map(|pair| pair.split_once(','));
        let numbers: Vec<(i32, i32)> = pairs.map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).collect();
        let least = |of: fn(&(i32, i32)) -> i32| numbers.iter().map(of).min().unwrap_or(0);
        let (left, top) = (least(|pair| pair.0), least(|pair| pair.1));
        numbers.iter().map(|(x, y)| (x - left, y - top)).collect::<Vec<_>>()
    };
    let shapes: std::collections::BTreeSet<Vec<(i32, i32)>> = marks.map(shape).collect();
    assert_eq!(shapes.len(), 6, "{shapes:?}");
}

#[test]
fn a_prediction_is_dashed_in_the_colour_of_what_it_predicts() {
    let svg = plot().to_svg("p");
    let dashed = "class=\"plot-first\" stroke-width=\"2\" stroke-dasharray";
    assert!(svg.contains(dashed) && !svg.contains("class=\"plot-third\""), "{svg}");
}

#[test]
fn another_system_is_told_apart_by_its_marks_and_its_dots_and_not_by_its_colour() {
    let mut plot = plot();
    plot.lines[2].role = LineRole::OtherSystem(0);
    let svg = plot.to_svg("p");
    let dotted = "class=\"plot-first\" stroke-width=\"2\" stroke-dasharray=\"2 3\"";
    let hollow = "r=\"5\" stroke=\"currentColor\" class=\"plot-first\"";
    assert!(svg.contains(dotted) && svg.contains(hollow) && !svg.contains("class=\"plot-third\""), "{svg}");
}

#[test]
fn bounds_have_no_marks_and_differ_in_their_dashes() {
    let mut plot = plot();
    plot.lines[0].role = LineRole::Bound;
    plot.lines[1].role = LineRole::Bound;
    plot.lines[2].role = LineRole::Below(0);
    let svg = plot.to_svg("p");
    assert!(svg.contains("stroke-dasharray=\"5 4\"") && svg.contains("stroke-dasharray=\"11 4\""), "{svg}");
    // Marks of the measurements below the first bound alone, which no line joins: three points and the legend.
    assert_eq!((svg.matches("<circle").count(), svg.matches("<polygon").count()), (4, 0), "{svg}");
}

#[test]
fn a_value_that_has_no_logarithm_makes_the_axis_linear() {
    let mut plot = plot();
    plot.lines[0].points[0].value = (-1e-3, None);
    assert!(plot.to_svg("p").contains("−1 ms"));
}

#[test]
fn a_parameter_with_a_unit_is_written_with_it() {
    let mut plot = plot();
    plot.x_unit = Some(Unit::Bytes);
    assert!(plot.to_svg("p").contains(">100 B</text>"));
    assert!(plot.description().contains("at operations 100 B"));
    // Each point has the unit of its own size.
    assert_eq!([4096.0, 1048576.0, 4e7].map(|x| plot.place(x)), ["4 KiB", "1 MiB", "40 MB"]);
}

#[test]
fn the_description_names_the_extremes_and_where_they_lie() {
    let description = plot().description();
    let extremes = "queued, 3 points: least 2.00 µs at operations 1, largest 200 µs at operations 100.";
    assert!(description.contains(extremes), "{description}");
}

#[test]
fn a_line_without_points_says_why() {
    let mut plot = plot();
    plot.lines[0].points.clear();
    plot.lines[0].missing.push("10 skipped".to_owned());
    assert!(plot.to_svg("p").contains("10 skipped"));
    assert!(plot.description().contains("queued: no points; 10 skipped."));
}

#[test]
fn no_two_tick_texts_touch() {
    let ticks = (0..40).map(|i| (i * 6, (i * 1000).to_string())).collect();
    let kept = legible(ticks);
    assert_eq!(kept.first().unwrap().0, 0);
    assert_eq!(kept.last().unwrap().0, 39 * 6);
    assert!(kept.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 30));
}
