use super::*;

fn drawn(draw: impl FnOnce(&mut Svg<'_>)) -> String {
    let mut body = String::new();
    draw(&mut Svg(Backend { body: &mut body, size: (9, 9), id: "p", patterns: &[] }.into_drawing_area()));
    body
}

#[test]
fn each_paint_is_written_with_its_class_and_its_dashes() {
    for (paint, written) in [
        (Paint::Whisker, "plot-whisker\""),
        (Paint::Series(3), "plot-fourth\""),
        (Paint::Dashed(7), "plot-first\" stroke-dasharray=\"5 4\""),
        (Paint::Dotted(8), "plot-second\" stroke-dasharray=\"2 3\""),
    ] {
        let body = drawn(|svg| svg.path(&[(1, 1), (5, 1)], paint, 1));
        assert!(body.ends_with(&format!("class=\"{written}/>\n")), "{body}");
    }
}

#[test]
fn a_page_has_the_style_sheet_of_its_pictures_once() {
    let picture = |id| picture(id, &[], ("T", "D"), 1, |_| ());
    let page = styled_once(&format!("a\n{}b\n{}c\n{}", picture("x"), picture("y"), picture("z")));
    assert_eq!((page.matches("<style>").count(), page.matches("<svg").count()), (1, 3), "{page}");
    assert!(!page.contains("\n\n") && page.find("<style>") < page.find("id=\"y-title"), "{page}");
    assert_eq!(styled_once("no picture"), "no picture");
}

#[test]
fn every_class_has_a_variable_of_the_page_and_a_colour_of_its_own() {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../report-templates/syncscope.css");
    let page = std::fs::read_to_string(place).unwrap();
    let picture = picture("p", &[], ("T", "D"), 1, |_| ());
    for (class, alone) in CLASSES {
        assert!(page.contains(&format!("--{class}:")), "{class}");
        assert!(picture.contains(&format!(".{class}{{color:var(--{class},{alone})}}")), "{picture}");
    }
}

#[test]
fn lines_of_one_paint_are_one_element_and_an_unseen_outline_is_none() {
    let body = drawn(|svg| {
        for (y, paint) in [(1, Paint::Whisker), (2, Paint::Whisker), (3, Paint::Muted)] {
            svg.path(&[(1, y), (5, y)], paint, 1);
        }
        svg.path(&[(1, 4), (5, 4), (5, 6), (1, 4)], Paint::Muted, 1);
        for outline in [Paint::Series(0), Paint::Series(1)] {
            svg.bar([(1, 1), (4, 4)], Paint::Series(0), outline);
        }
    });
    let lines: Vec<&str> = body.lines().filter(|line| line.starts_with("<path")).collect();
    let whiskers = r#"<path d="M1,1 5,1M1,2 5,2" class="plot-whisker"/>"#;
    assert_eq!(lines, [whiskers, r#"<path d="M1,3 5,3M1,4 5,4 5,6z" class="plot-muted"/>"#]);
    assert_eq!(body.matches("<rect").count(), 3, "{body}");
}

#[test]
fn a_text_is_text_whatever_it_holds_and_stays_in_the_picture() {
    let text = "<script>{{#include x}}";
    let body = drawn(|svg| svg.text(text, (99, 1), Weight::Regular, Paint::Text, Side::Left));
    assert!(body.starts_with("<text x=\"9\" y=\"5\""), "{body}");
    assert!(!body.contains("<script") && !body.contains('{'), "{body}");
}

#[test]
fn on_any_ground_each_paint_is_seen_on_a_light_and_on_a_dark_one() {
    let light = |byte: &str| {
        let share = f64::from(u8::from_str_radix(byte, 16).unwrap()) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    // WCAG 2.2, "contrast ratio": 3 for graphics and for large text, which labels beside their marks are read as.
    let contrast = |one: f64, other: f64| (one.max(other) + 0.05) / (one.min(other) + 0.05);
    let picture = on_any_ground(&picture("p", &[], ("T", "D"), 1, |_| ()));
    let mut seen = 0;
    for rule in picture.split(".plot-").skip(1) {
        let Some((class, color)) = rule.split_once("{color:#") else { continue };
        let color = color.split('}').next().unwrap();
        // A grid is no more than a hint, and a ground is not seen.
        if color.len() == 6 {
            let [red, green, blue] = [0, 2, 4].map(|at| light(&color[at..at + 2]));
            let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
            let dark = light("11");
            assert!(contrast(luminance, 1.0) >= 3.0 && contrast(luminance, dark) >= 3.0, "{class} {color}");
            seen += 1;
        }
    }
    assert_eq!(seen, CLASSES.len() - 2, "{picture}");
}
