//! Names of kernels and functions as their authors wrote them, and not as compilers spell them for the linker.

/// A name as its author wrote it, cut where templates make it endless.
pub(crate) fn readable(name: &str) -> String {
    const MOST: usize = 160;
    let name = demangled(name);
    name.char_indices().nth(MOST).map(|(end, _)| format!("{}…", &name[..end])).unwrap_or(name)
}

/// A name of Rust or of C++ as its author wrote it; any other as it is. To a compiler of C++ `f` alone is a type, `float`.
pub(crate) fn demangled(name: &str) -> String {
    if !name.starts_with('_') {
        return name.to_owned();
    }
    if let Ok(name) = rustc_demangle::try_demangle(name) {
        // Without the digest that the compiler adds.
        return format!("{name:#}");
    }
    let of_cpp = cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle().ok());
    of_cpp.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_as_its_author_wrote_it_and_cut_where_it_is_endless() {
        for (name, written) in [
            ("_ZN2at6native6vectorIfLi4EEEvT_", "void at::native::vector<float, 4>(float)"),
            ("_ZN10train_loop4step17h0123456789abcdefE", "train_loop::step"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("affine", "affine"),
            ("f", "f"),
            ("Pi", "Pi"),
            ("_Z", "_Z"),
            ("_", "_"),
            ("_f", "_f"),
        ] {
            assert_eq!(readable(name), written);
        }
        assert_eq!(readable(&"a".repeat(500)).chars().count(), 161);
    }
}
