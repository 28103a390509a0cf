// Keyboard access that mdBook's pages lack: the toggle of the sidebar is a label, and code or a table that is wider
// than the page cannot be scrolled with the keyboard. What is folded is open on paper, and where a link leads to it.
'use strict';

const toggle = document.getElementById('mdbook-sidebar-toggle');
if (toggle) {
    toggle.setAttribute('role', 'button');
    toggle.tabIndex = 0;
    toggle.addEventListener('keydown', event => {
        if (event.key === 'Enter' || event.key === ' ') {
            event.preventDefault();
            toggle.click();
        }
    });
}
document.querySelectorAll('main pre > code, main .table-wrapper').forEach(wide => {
    wide.tabIndex = 0;
});

let unfolded = [];
window.addEventListener('beforeprint', () => {
    unfolded = [...document.querySelectorAll('main details:not([open])')];
    unfolded.forEach(details => { details.open = true; });
});
window.addEventListener('afterprint', () => {
    unfolded.forEach(details => { details.open = false; });
    unfolded = [];
});
const unfold = () => {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (named && named.matches('details')) {
        named.open = true;
    }
};
window.addEventListener('hashchange', unfold);
unfold();
