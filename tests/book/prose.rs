//! The language of the pages: the words that stand in them, how hard they are to read, and what a search finds.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::readability::{Counts, sentences};
use super::sentences::words;
use super::*;

/// The highest grade that a page may have.
const MOST: f64 = 10.0;
/// The most words that a sentence may have.
const LONGEST: usize = 40;

/// A heading, a paragraph, a cell or a label as it is read, with `0` in the place of code.
struct Block {
    text: String,
    /// Whether it is running text: a paragraph, an item of a list, the text behind a term of the glossary.
    runs: bool,
}

/// What a reader sees of a page of Markdown.
fn blocks(page: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_DEFINITION_LIST | Options::ENABLE_HEADING_ATTRIBUTES;
    let (mut found, mut text, mut html) = (Vec::new(), String::new(), String::new());
    let (mut code, mut runs) = (false, false);
    let mut end = |text: &mut String, runs: bool| {
        let words = text.split_whitespace().collect::<Vec<&str>>().join(" ");
        text.clear();
        if !words.is_empty() {
            found.push(Block { text: words, runs });
        }
    };
    for event in Parser::new_ext(page, options) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => code = true,
            Event::End(TagEnd::CodeBlock) => code = false,
            Event::Start(Tag::Paragraph | Tag::Item | Tag::DefinitionListDefinition) => {
                end(&mut text, runs);
                runs = true;
            }
            Event::Start(Tag::Heading { .. } | Tag::TableCell | Tag::DefinitionListTitle) => {
                end(&mut text, runs);
                runs = false;
            }
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Item
                | TagEnd::DefinitionListDefinition
                | TagEnd::Heading(_)
                | TagEnd::TableCell
                | TagEnd::DefinitionListTitle,
            ) => end(&mut text, runs),
            Event::Text(part) if !code => text.push_str(&part),
            Event::Code(_) => text.push('0'),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            Event::Html(part) => html.push_str(&part),
            Event::End(TagEnd::HtmlBlock) => {
                for line in shown(&html).split('\n') {
                    end(&mut line.to_owned(), false);
                }
                html.clear();
            }
            _ => {}
        }
    }
    end(&mut text, runs);
    found
}

/// The text of HTML, a line for each element that stands by itself: without code, without styles, without citations.
fn shown(html: &str) -> String {
    let (mut text, mut rest) = (String::new(), html);
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        let (tag, after) = tag.split_once('>').unwrap_or((tag, ""));
        let name = tag.split([' ', '/', '\n']).next().unwrap_or_default();
        let hidden = matches!(name, "code" | "style" | "script") || tag.contains("class=\"stands\"");
        rest = match after.split_once(&format!("</{name}>")) {
            Some((_, behind)) if hidden => {
                text.push('0');
                behind
            }
            _ => after,
        };
        let inline =
            ["a", "em", "strong", "span"].contains(&tag.trim_start_matches('/').split(' ').next().unwrap_or(""));
        text.push_str(if inline || hidden { "" } else { "\n" });
    }
    text + rest
}

/// The pages of the book by their names, with all texts of their answers, whatever was measured; and the README.
fn prose() -> &'static [(String, Vec<Block>)] {
    static PAGES: LazyLock<Vec<(String, Vec<Block>)>> = LazyLock::new(read_pages);
    &PAGES
}

fn read_pages() -> Vec<(String, Vec<Block>)> {
    let name = |path: &Path| Some(path.to_str()?.strip_prefix("book/src/")?.strip_suffix(".md")?.to_owned());
    let names = whole_source().keys().filter_map(|path| name(path)).filter(|name| name != "SUMMARY");
    let mut pages: Vec<(String, Vec<Block>)> =
        names.map(|name| (name.clone(), blocks(&read(whole_source(), &name)))).collect();
    let results = fixture::run();
    for document in documents() {
        let advised = document.advice.iter().flat_map(|advice| &advice.rows).map(|row| &row.choose);
        let said = document.answer.iter().chain(advised);
        let texts = said.flat_map(|said| [&said.then, &said.otherwise, &said.unclear]);
        let said = texts
            .map(|text| words(&text.filled(&document, &results, "syncscope").unwrap()))
            .collect::<Vec<_>>()
            .join("\n\n");
        let page = pages.iter_mut().find(|(name, _)| *name == document.id).unwrap();
        page.1.extend(blocks(&said));
    }
    pages.push(("README of the repository".to_owned(), blocks(include_str!("../../README.md"))));
    pages
}

/// The words of a text in small letters, without the marks around them; quotations and identifiers are left out.
fn tokens(text: &str) -> Vec<String> {
    let mut own = String::new();
    for (place, part) in text.split('“').enumerate() {
        own.push_str(if place == 0 { part } else { part.split_once('”').map_or("", |(_, rest)| rest) });
        own.push_str(" 0 ");
    }
    let own = own.to_lowercase().replace('’', "'");
    let marks = |c: char| !c.is_alphanumeric() && c != '-';
    let words = own.split_whitespace().map(|word| word.trim_matches(marks)).filter(|word| !word.is_empty());
    words.map(|word| if word.contains(['.', '_']) { "0" } else { word }.to_owned()).collect()
}

/// Whether a text has the phrase: `*` at the end of a word stands for any ending.
fn has(text: &[String], phrase: &str) -> bool {
    let phrase: Vec<&str> = phrase.split_whitespace().collect();
    let same = |(word, known): (&String, &&str)| {
        let known = known.to_lowercase();
        known.strip_suffix('*').map_or(*word == known.trim_matches(','), |begin| word.starts_with(begin))
    };
    text.windows(phrase.len()).any(|words| words.iter().zip(&phrase).all(same))
}

/// The lines of a list of the tests, without its remarks.
fn lines(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn no_page_says_what_the_list_of_words_has_another_word_for() {
    let list: Vec<(&str, &str)> =
        lines(include_str!("words.txt")).map(|line| line.split_once(" -> ").expect(line)).collect();
    assert!(list.len() > 40);
    let names: Vec<String> = documents().into_iter().map(|document| document.id).collect();
    let mut found = Vec::new();
    for (page, blocks) in prose() {
        for block in blocks.iter().filter(|block| !names.contains(&block.text)) {
            let text = tokens(&block.text);
            let wrong = list.iter().filter(|(phrase, _)| has(&text, phrase));
            found.extend(wrong.map(|(phrase, instead)| format!("{page}: “{phrase}” ({instead}): {}", block.text)));
        }
    }
    assert!(found.is_empty(), "{} times:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_phrase_is_found_in_prose_and_not_in_code_quotations_and_citations() {
    let found = |page: &str, phrase: &str| blocks(page).iter().any(|block| has(&tokens(&block.text), phrase));
    for page in ["Two *barriers*.", "# A barrier", "| a |\n|---|\n| barrier, or none |", "<div><b>Barrier</b></div>"] {
        assert!(found(page, "barrier*"), "{page}");
    }
    assert!(found("Read it at\nthe  link.", "the link") && !found("Read at the linked page.", "the link"));
    for page in [
        "`barrier`",
        "```c\nbarrier\n```",
        "A text says “barrier”.",
        "The row barrier.a has barrier_b.",
        "<p class=\"stands\">Stands in Barrier.</p>",
        "<p>See <code>barrier</code>.</p>",
        "<i title=\"barrier\">x</i>",
    ] {
        assert!(!found(page, "barrier*"), "{page}");
    }
}

#[test]
fn no_mark_of_markdown_is_left_for_a_reader_to_see() {
    for (page, blocks) in prose() {
        for block in blocks {
            let stressed =
                |word: &str| word.strip_prefix('*').is_some_and(|rest| rest.starts_with(char::is_alphabetic));
            let marked = block.text.contains('`') || block.text.split_whitespace().any(stressed);
            assert!(!marked && !has_lost_items(&block.text), "{page}: {}", block.text);
        }
    }
}

/// Whether items of a list became text: a dash with no space behind it, or numbers that go on within a paragraph.
fn has_lost_items(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |word: &str| word.strip_suffix('.').is_some_and(|digits| digits.parse::<u8>().is_ok());
    let goes_on = words
        .windows(3)
        .any(|three| three[0].ends_with('.') && number(three[1]) && three[2].starts_with(char::is_uppercase));
    goes_on || text.strip_prefix('-').is_some_and(|rest| rest.starts_with(char::is_alphabetic))
}

#[test]
fn items_that_are_text_are_found() {
    let text = |page: &str| blocks(page).iter().map(|block| block.text.clone()).collect::<Vec<_>>();
    for page in ["-**On a GPU:** It waits.", "1. Say it. 2. Warm up. 3. Measure."] {
        assert!(text(page).iter().any(|text| has_lost_items(text)), "{page}");
    }
    for page in ["- **On a GPU:** It waits.", "1. Say it.\n2. Warm up.", "It takes 2. Then it ends."] {
        assert!(!text(page).iter().any(|text| has_lost_items(text)), "{page}");
    }
}

#[test]
fn every_page_reads_at_a_grade_of_ten_or_lower() {
    let mut hard = Vec::new();
    for (page, blocks) in prose() {
        let running: Vec<&str> = blocks.iter().filter(|block| block.runs).map(|block| &*block.text).collect();
        let counts = Counts::of(running.iter().copied());
        println!("{page:28} grade {:4.1}, {:4.1} words a sentence", counts.grade(), counts.length());
        if counts.grade() > MOST {
            let mut all: Vec<&str> = running.iter().flat_map(|text| sentences(text)).collect();
            all.sort_by(|a, b| Counts::of([*b]).grade().total_cmp(&Counts::of([*a]).grade()));
            hard.push(format!("{page} has grade {:.1}:\n  {}", counts.grade(), all[..all.len().min(5)].join("\n  ")));
        }
    }
    assert!(hard.is_empty(), "{}", hard.join("\n"));
}

#[test]
fn no_sentence_has_to_be_read_twice_for_its_length() {
    let mut long = Vec::new();
    for (page, blocks) in prose() {
        for sentence in blocks.iter().filter(|block| block.runs).flat_map(|block| sentences(&block.text)) {
            let words = sentence.split_whitespace().count();
            if words > LONGEST {
                long.push(format!("{page}, {words} words: {sentence}"));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn a_search_for_what_students_type_finds_a_sentence_on_the_page_that_explains_it() {
    let index = fixture_book().iter().find(|(path, _)| path.to_string_lossy().starts_with("site/searchindex"));
    let script = std::str::from_utf8(index.expect("the site has an index").1).unwrap();
    let json = script.split_once("JSON.parse('").and_then(|(_, rest)| rest.rsplit_once("')")).expect("an index").0;
    let index: serde_json::Value = serde_json::from_str(&json.replace("\\'", "'").replace("\\\\", "\\")).unwrap();
    let docs = index["index"]["documentStore"]["docs"].as_object().unwrap();
    for line in lines(include_str!("search.txt")) {
        let (term, pages) = line.split_once(": ").expect(line);
        for page in pages.split(' ') {
            let found = docs.iter().any(|(id, entry)| {
                let place = index["doc_urls"][id.parse::<usize>().unwrap()].as_str().unwrap();
                let sentences = sentences(entry["body"].as_str().unwrap());
                let says = |sentence: &&str| sentence.to_lowercase().contains(&term.to_lowercase());
                let whole = |sentence: &&str| sentence.split(' ').count() > 4;
                place.starts_with(&format!("{page}.html")) && sentences.iter().any(|s| says(s) && whole(s))
            });
            assert!(found, "no sentence of {page} has “{term}”");
        }
    }
}
