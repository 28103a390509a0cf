//! How hard a text is to read: the grade of J. P. Kincaid, R. P. Fishburne, R. L. Rogers and B. S. Chissom, *Derivation of
//! new readability formulas for Navy enlisted personnel*, Research Branch Report 8-75, Naval Technical Training, 1975.
//!
//! A numeral or a piece of code makes a sentence longer by a word and has no syllables of its own: the mean of syllables
//! is that of the other words. Syllables are counted by the groups of vowels, with silent endings taken off.

/// What sentences add up to.
#[derive(Default)]
pub(super) struct Counts {
    sentences: usize,
    /// All words, numerals and code too.
    words: usize,
    /// Words of letters, and their syllables.
    lettered: usize,
    syllables: usize,
}

impl Counts {
    /// The counts of some texts, each of which ends a sentence.
    pub(super) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut counts = Self::default();
        texts.into_iter().flat_map(sentences).for_each(|sentence| counts.add(sentence));
        counts
    }

    fn add(&mut self, sentence: &str) {
        let words: Vec<&str> =
            sentence.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).collect();
        let lettered = words.iter().filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
        self.sentences += usize::from(!words.is_empty());
        self.words += words.len();
        for word in lettered {
            self.lettered += 1;
            self.syllables += syllables(word);
        }
    }

    /// The years of school that a reader needs: 0.39 · words / sentences + 11.8 · syllables / words − 15.59.
    pub(super) fn grade(&self) -> f64 {
        if self.sentences == 0 || self.lettered == 0 {
            return 0.0;
        }
        let ratio = |part: usize, whole: usize| part as f64 / whole as f64;
        0.39 * ratio(self.words, self.sentences) + 11.8 * ratio(self.syllables, self.lettered) - 15.59
    }

    /// How many words a sentence has, in the mean.
    pub(super) fn length(&self) -> f64 {
        self.words as f64 / self.sentences.max(1) as f64
    }
}

/// The sentences of a text. A point after a single letter is that of an initial.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let (mut found, mut from) = (Vec::new(), 0);
    for (place, end) in text.match_indices(['.', '!', '?']) {
        let rest = text[place + end.len()..].trim_start_matches(['”', '"', ')', '*']);
        let before = text[from..place].rsplit(char::is_whitespace).next().unwrap_or_default();
        let initial = end == "." && before.chars().count() == 1 && before.chars().all(char::is_uppercase);
        if rest.starts_with(char::is_whitespace) && !initial {
            found.push(text[from..text.len() - rest.len()].trim());
            from = text.len() - rest.len();
        }
    }
    found.push(text[from..].trim());
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// The syllables of a word; those of its parts where it has a hyphen or a stroke.
fn syllables(word: &str) -> usize {
    word.split(['-', '–', '—', '/', '↔']).filter(|part| part.chars().any(char::is_alphabetic)).map(of_part).sum()
}

fn of_part(part: &str) -> usize {
    let lower = part.to_lowercase().replace('’', "'");
    let word: String = lower.split('\'').next().unwrap_or_default().chars().filter(|c| c.is_alphabetic()).collect();
    let is_vowel = |c: char| "aeiouyäöüéè".contains(c);
    let letters: Vec<char> = word.chars().collect();
    let groups = (0..letters.len()).filter(|at| is_vowel(letters[*at]) && (*at == 0 || !is_vowel(letters[at - 1])));
    let ends = |ending: &str, heard: &[&str]| {
        let stem = word.strip_suffix(ending).filter(|stem| !stem.ends_with(is_vowel));
        stem.is_some_and(|stem| !stem.is_empty() && !heard.iter().any(|end| stem.ends_with(end)))
    };
    let after_consonant = |end: &str| {
        word.strip_suffix(end).is_some_and(|stem| stem.ends_with(|c: char| c.is_alphabetic() && !is_vowel(c)))
    };
    let heard_le = after_consonant("le") || after_consonant("les");
    let silent =
        !heard_le && (ends("e", &[]) || ends("ed", &["t", "d"]) || ends("es", &["s", "x", "z", "ch", "sh", "c", "g"]));
    (groups.count() - usize::from(silent)).max(1)
}

#[test]
fn syllables_of_known_words_are_counted() {
    let known = [
        (1, "a the host waits timed blocks time times launched through stream pinned whose"),
        (2, "device kernel even copies table tables needed waited latest complete matmul pages caches reading"),
        (3, "memory overlap's example completed operate implicit asking-for processor non-blocking's latency"),
        (4, "synchronizes operation device-to-host iteration asynchronous"),
        (5, "synchronization"),
    ];
    for (count, words) in known {
        for word in words.split(' ') {
            assert_eq!(syllables(word), count, "{word}");
        }
    }
}

#[test]
fn a_text_has_the_grade_of_the_formula() {
    // 6 words, 1 sentence, 6 syllables; then 3 and 3 words, 2 sentences.
    let grade = |text: &str| Counts::of([text]).grade();
    assert!((grade("The host waits for the stream.") - (0.39 * 6.0 + 11.8 - 15.59)).abs() < 1e-9);
    assert!((grade("The host waits. Streams run on.") - (0.39 * 3.0 + 11.8 - 15.59)).abs() < 1e-9);
    // A numeral makes the sentence longer and has no syllables.
    assert!((grade("The host waits 12.5 times.") - (0.39 * 5.0 + 11.8 - 15.59)).abs() < 1e-9);
    assert_eq!(grade(""), 0.0);
}

#[test]
fn a_sentence_ends_at_its_point_and_not_at_an_initial_or_in_a_number() {
    let text = "B. Efron wrote it. It takes 4.02 µs! (Does it?) Yes";
    assert_eq!(sentences(text), ["B. Efron wrote it.", "It takes 4.02 µs!", "(Does it?)", "Yes"]);
}
