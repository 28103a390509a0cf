//! Pictures in SVG of a course: each is a document of its own where a reader opens it, and no policy can stand in it. One that
//! could do more than show itself is refused.

use roxmltree::{Document, Node};

use super::markup;

/// The most declarations of namespaces (`xmlns`): reading takes as long as the square of those that lie in each other.
const MOST_NAMESPACES: usize = 256;

/// Why a picture is refused.
pub(super) fn refusal(text: &str) -> Option<String> {
    let why = acts(text)?;
    Some(format!("this picture can do more than show itself: {why}; take that out of it, or make a PNG of it"))
}

/// What in an SVG does more than show a picture.
fn acts(text: &str) -> Option<String> {
    const OTHER: [&str; 2] = ["http://www.w3.org/1999/xhtml", "http://www.w3.org/1998/Math/MathML"];
    const ACTIVE: [&str; 6] = ["script", "foreignObject", "handler", "listener", "set", "animate"];
    if let Some(encoding) = encoding(text).filter(|encoding| !encoding.eq_ignore_ascii_case("utf-8")) {
        return Some(format!("it says that it is `{encoding}`, and not UTF-8"));
    }
    if text.matches("xmlns").count() > MOST_NAMESPACES {
        return Some(format!("it has more than {MOST_NAMESPACES} declarations of namespaces"));
    }
    if let Some(why) = markup::beyond_limits(text) {
        return Some(why);
    }
    // A document type may give any element any attribute: one is an error here.
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => return Some(format!("it is not the XML that a picture is ({error})")),
    };
    let of_node = |node: Node<'_, '_>| {
        if let Some(instruction) = node.pi() {
            return Some(format!("it has the instruction `{}`", instruction.target));
        }
        let tag = node.tag_name();
        if ACTIVE.contains(&tag.name()) || tag.namespace().is_some_and(|space| OTHER.contains(&space)) {
            return Some(format!("it has an element `{}`", tag.name()));
        }
        if tag.name() == "style" {
            let style: String = node.children().filter(Node::is_text).filter_map(|child| child.text()).collect();
            if style.contains('\\') || asks_others(&style) {
                return Some("its style may load a file".to_owned());
            }
        }
        node.attributes().find_map(|attribute| {
            let (name, value) = (attribute.name().to_lowercase(), attribute.value());
            // An attribute may be a style, in which signs may be escaped.
            let is_style = value.contains('(') && (value.contains('\\') || asks_others(value));
            let acts = name.starts_with("on") || name == "base" || name == "href" && !is_inside(value) || is_style;
            acts.then(|| format!("it has the attribute `{name}` of `{}`", tag.name()))
        })
    };
    document.root().descendants().find_map(of_node)
}

/// The encoding that an XML declaration states.
fn encoding(text: &str) -> Option<&str> {
    let declaration = text.trim_start_matches('\u{feff}').strip_prefix("<?xml")?.split_once("?>")?.0;
    let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next()?;
    Some(value.get(1..)?.split_once(quote).map_or(value, |(encoding, _)| encoding))
}

/// Whether an address is of a part of the picture, or of a picture of dots or a font that stands in it.
fn is_inside(address: &str) -> bool {
    const KINDS: [&str; 4] = ["data:image/", "data:font/", "data:application/font-", "data:application/x-font-"];
    let kind = address.split([';', ',']).next().unwrap_or_default().to_ascii_lowercase();
    address.starts_with('#') || KINDS.iter().any(|known| kind.starts_with(known)) && !kind.contains("svg")
}

/// Whether a style without escapes loads what does not stand in the picture.
fn asks_others(style: &str) -> bool {
    let style = style.to_ascii_lowercase();
    // These take an address as a text.
    const BY_TEXT: [&str; 4] = ["@import", "image-set(", "image(", "src("];
    let mut addresses = style.split("url(").skip(1);
    BY_TEXT.iter().any(|way| style.contains(way))
        || addresses.any(|rest| !is_inside(rest.trim_start().trim_start_matches(['"', '\''])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(inside: &str) -> String {
        format!(
            "<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg' xmlns:x='http://www.w3.org/1999/xlink' {inside}</svg>"
        )
    }

    #[test]
    fn a_picture_that_shows_itself_is_taken_and_one_that_acts_is_refused() {
        for inside in [
            "viewBox='0 0 1 1'><style>path { fill: red }</style><path d='M0 0' id='a'/><use x:href='#a'/>",
            "><image href='data:image/png;base64,AAsvgA=='/><text>onload script</text>",
            "><style>@font-face { src: url(\"data:font/woff2;base64,AA==\") } a { fill: url( #b ) }</style>",
            "><path clip-path='url(#a)' style='fill:url(&quot;#b&quot;)' transform='matrix(1 0 0 1 0 0)' x:export='C:\\a'/>",
        ] {
            assert_eq!(acts(&svg(inside)), None, "{inside}");
        }
        for inside in [
            "onload='alert(1)'>",
            "><script>alert(1)</script>",
            "><s:script xmlns:s='http://www.w3.org/2000/svg' x:href='x.txt'/>",
            "><a x:href='java&#115;cript:alert(1)'><text>x</text></a>",
            "><foreignObject><iframe xmlns='http://www.w3.org/1999/xhtml' srcdoc='x'/></foreignObject>",
            "><iframe xmlns='http://www.w3.org/1999/xhtml' srcdoc='x'/>",
            "><set attributeName='href' to='javascript:alert(1)'/>",
            "><use href='data:image/svg+xml,x'/>",
            "><use href='data:image/SVG+xml,x'/>",
            "><not closed>",
        ] {
            assert!(acts(&svg(inside)).is_some(), "{inside}");
        }
        let typed = "<!DOCTYPE svg [<!ATTLIST svg onload CDATA 'alert(1)'>]><svg xmlns='http://www.w3.org/2000/svg'/>";
        let styled = "<?xml-stylesheet type='text/xsl' href='x.txt'?><svg xmlns='http://www.w3.org/2000/svg'/>";
        assert!(acts(typed).is_some() && acts(styled).is_some());
    }

    #[test]
    fn a_picture_loads_nothing_by_its_styles() {
        for inside in [
            "><style>@import url(http://x/a.css);</style>",
            "><style>@IMPORT 'a.css';</style>",
            "><style>@imp<!-- -->ort 'a.css';</style>",
            "><style><![CDATA[@import 'a.css';]]></style>",
            "><style>@\\69mport 'a.css';</style>",
            "><style>a { fill: u\\72l(http://x) }</style>",
            "><style>a { fill: &#117;rl(//x/a) }</style>",
            "><style>a { background: image-set('http://x' 1x) }</style>",
            "><style>a { fill: url(#b) url('http://x') }</style>",
            "><style>a { fill: url(data:image/svg+xml,x) }</style>",
            " style='fill:url(http://x)'>",
            "><path fill='url(http://x#a)'/>",
            "><path filter='URL( \"http://x#a\")'/>",
            "><path mask='u\\72l(http://x#a)'/>",
            "><path cursor='url(//x/a), auto'/>",
            " xml:base='http://x/'><path fill='url(#a)'/>",
        ] {
            assert!(acts(&svg(inside)).is_some(), "{inside}");
        }
    }

    #[test]
    fn a_picture_says_of_itself_that_it_is_utf_8_or_nothing() {
        let with = |declaration: &str| format!("<?xml {declaration}?><svg xmlns='http://www.w3.org/2000/svg'/>");
        for declaration in
            ["version='1.0'", "version='1.0' encoding=\"utf-8\" standalone='no'", "version='1.0' encoding = 'UTF-8'"]
        {
            assert_eq!(acts(&with(declaration)), None, "{declaration}");
        }
        for encoding in ["Shift_JIS", "UTF-16", "utf-7", "ISO-2022-JP", "GBK", "windows-1252", "x-user-defined", ""] {
            for quote in ['"', '\''] {
                let text = with(&format!("version='1.0'\nencoding\t= {quote}{encoding}{quote}"));
                assert!(acts(&text).is_some_and(|why| why.contains("not UTF-8")), "{text}");
                assert!(acts(&format!("\u{feff}{text}")).is_some(), "{text}");
            }
        }
    }

    #[test]
    fn a_picture_has_so_many_namespaces_and_attributes_at_most() {
        let nested = |levels: usize| {
            let open: String = (0..levels).map(|level| format!("<g xmlns:a{level}='u{level}'>")).collect();
            svg(&format!(">{open}{}", "</g>".repeat(levels)))
        };
        assert_eq!(acts(&nested(200)), None);
        assert!(acts(&nested(300)).is_some_and(|why| why.contains("more than 256 declarations of namespaces")));
        let attributes: String = (0..300).map(|number| format!(" a{number}='>'")).collect();
        assert!(acts(&svg(&format!("><g{attributes}/>"))).is_some_and(|why| why.contains("more than 256 attributes")));
    }
}
