//! The pictures of a page of the library, with PNG beside their SVG: what is made of a notebook by LaTeX shows neither HTML
//! nor SVG.
//!
//! A page has one block of each MIME type, and a picture in the place of its text would cost the tables beside it. So a page
//! with pictures becomes outputs of their own, one below the other as on the page: each picture, and what stands between
//! them. The letters are those of DejaVu Sans, by whose widths the library sets texts, whatever a machine has.

use std::sync::{Arc, LazyLock};

use anyhow::Context;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};
use syncscope_present::escape;

/// An output by MIME type.
pub(crate) type Bundle = Vec<(String, String)>;

/// Where a page of the library begins and ends.
const PAGE: [&str; 2] = ["<div class=\"syncscope-cell\">\n", "</div>"];
/// Pixels of PNG for each of a picture: printed, they are not seen.
const SCALE: f32 = 2.0;

/// What a cell shows, as one output or several.
pub(crate) fn apart(shown: Bundle) -> Vec<Bundle> {
    let of = |mime: &str| shown.iter().find(|(own, _)| own == mime).map(|(_, text)| text.as_str());
    let page = of("text/html").and_then(|html| html.strip_prefix(PAGE[0])?.strip_suffix(PAGE[1]));
    let (Some(page), Some(text)) = (page, of("text/plain")) else { return vec![shown] };
    let texts: Vec<&str> = text.lines().collect();
    let (mut texts, mut lines, mut outputs) = (texts.as_slice(), String::new(), Vec::new());
    for line in page.split_inclusive('\n') {
        let Some((description, png)) = picture(line) else {
            lines.push_str(line);
            continue;
        };
        let is_its = |text: &&str| escape(text) == description;
        let (before, its) = texts.split_at(texts.iter().position(is_its).unwrap_or(0));
        let (its, behind) = its.split_at(its.len().min(1));
        outputs.extend(output(&lines, before));
        outputs.extend(output(line, its).map(|mut output| {
            output.push(("image/png".to_owned(), png));
            output
        }));
        (texts, lines) = (behind, String::new());
    }
    outputs.extend(output(&lines, texts));
    if outputs.is_empty() { vec![shown] } else { outputs }
}

/// Lines of a page as an output, where there are some.
fn output(lines: &str, texts: &[&str]) -> Option<Bundle> {
    let html = format!("{}{lines}{}", PAGE[0], PAGE[1]);
    let bundle = [("text/html", html), ("text/plain", texts.join("\n"))];
    (!lines.is_empty()).then(|| bundle.map(|(mime, text)| (mime.to_owned(), text)).into())
}

/// The description, as HTML has it, and the PNG of the picture that a line of a page is.
fn picture(line: &str) -> Option<(&str, String)> {
    let attribute = |name: &str| line.strip_prefix("<img ")?.split_once(&format!("{name}=\""))?.1.split_once('"');
    let (description, address) = (attribute("alt")?.0, attribute("src")?.0);
    let svg = percent_decode_str(address.strip_prefix("data:image/svg+xml,")?).decode_utf8().ok()?;
    Some((description, BASE64_STANDARD.encode(drawn(&svg).ok()?)))
}

/// A picture as PNG, whose size in print is that of the picture.
fn drawn(svg: &str) -> anyhow::Result<Vec<u8>> {
    static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
        let mut fonts = Database::new();
        [dejavu::sans::regular(), dejavu::sans::bold()].iter().for_each(|font| fonts.load_font_data(font.to_vec()));
        fonts.set_sans_serif_family("DejaVu Sans");
        Arc::new(fonts)
    });
    let tree = Tree::from_str(svg, &Options { fontdb: FONTS.clone(), ..Options::default() })?;
    let size = tree.size().scale_by(SCALE).context("a picture without a size")?.to_int_size();
    let mut pixels = Pixmap::new(size.width(), size.height()).context("a picture without a size")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    let mut made = Vec::new();
    let mut encoder = png::Encoder::new(&mut made, size.width(), size.height());
    encoder.set_color(png::ColorType::Rgba);
    // A pixel of a picture is the 96th part of an inch.
    let per_metre = (SCALE * 96.0 / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit: png::Unit::Meter }));
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels.take_demultiplied())?;
    writer.finish()?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with a sentence, a picture of a filled square, and a table, as the library writes it.
    fn page(picture: &str) -> Bundle {
        let html = format!("{}<p>One.</p>\n{picture}<table>\n</table>\n{}", PAGE[0], PAGE[1]);
        vec![("text/html".to_owned(), html), ("text/plain".to_owned(), "One.\nA <square> & more.\nrow 1".to_owned())]
    }

    const SVG: &str = "%3Csvg%20xmlns=%22http://www.w3.org/2000/svg%22%20width=%2210%22%20height=%2210%22%3E\
                       %3Cstyle%3E.a{color:%23767676}%3C/style%3E%3Crect%20width=%225%22%20height=%2210%22%20class=%22a%22%20\
                       fill=%22currentColor%22/%3E%3Ctext%20y=%2210%22%20font-family=%22sans-serif%22%20class=%22a%22%20\
                       x=%226%22%20fill=%22currentColor%22%20font-size=%2212%22%3EW%3C/text%3E%3C/svg%3E";

    #[test]
    fn a_page_with_a_picture_is_outputs_of_their_own_and_the_picture_has_png() {
        let image =
            format!("<img width=\"10\" alt=\"{}\" src=\"data:image/svg+xml,{SVG}\">\n", escape("A <square> & more."));
        let outputs = apart(page(&image));
        let texts: Vec<&str> = outputs.iter().map(|output| output[1].1.as_str()).collect();
        assert_eq!(texts, ["One.", "A <square> & more.", "row 1"]);
        assert!(outputs.iter().all(|output| output[0].1.starts_with(PAGE[0]) && output[0].1.ends_with(PAGE[1])));
        assert_eq!(outputs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 3, 2]);
        let made = BASE64_STANDARD.decode(&outputs[1][2].1).unwrap();
        let pixels = Pixmap::decode_png(&made).unwrap();
        let grey = |x, y| pixels.pixel(x, y).unwrap().demultiply();
        assert_eq!((pixels.width(), grey(2, 2).red(), grey(2, 2).alpha()), (20, 0x76, 255));
        let letter = (12..20).flat_map(|x| (0..20).map(move |y| (x, y))).filter(|(x, y)| grey(*x, *y).alpha() > 128);
        assert!(letter.count() > 5, "the letter is drawn");
        assert_eq!(grey(12, 1).alpha(), 0, "the ground is not");
    }

    #[test]
    fn what_is_no_page_with_pictures_is_one_output_as_it_was() {
        let table = page("");
        let others =
            vec![("text/html".to_owned(), "<img src=\"x\">".to_owned()), ("text/plain".to_owned(), "x".to_owned())];
        for shown in [table, others, page("<img width=\"1\" alt=\"\" src=\"data:image/svg+xml,%3C\">\n")] {
            assert_eq!(apart(shown.clone()), [shown]);
        }
    }
}
