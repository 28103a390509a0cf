//! The head of a page that needs no other file.

/// How each such page begins, and no page of another program: by it a page is known that may be replaced.
pub const PAGE_BEGIN: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
     <meta name=\"generator\" content=\"syncscope\">\n";

/// The page up to its body. Its Content-Security-Policy lets it load nothing; `scripts` is what that says of scripts.
pub fn page_head(title: &str, style: &str, scripts: &str) -> String {
    format!(
        "{PAGE_BEGIN}<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'{scripts}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{style}</style>\n</head>\n"
    )
}
