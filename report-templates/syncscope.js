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
    for (let around = named; around; around = around.parentElement) {
        if (around.matches('details')) {
            around.open = true;
        }
    }
    if (named) {
        named.scrollIntoView();
    }
};
window.addEventListener('hashchange', unfold);
unfold();

// A long matrix shows the rows that hold what is typed above it.
document.querySelectorAll('figure').forEach(figure => {
    const rows = [...figure.querySelectorAll('.matrix tbody tr')];
    if (rows.length < 12) {
        return;
    }
    const filter = document.createElement('input');
    filter.type = 'search';
    filter.className = 'filter';
    filter.placeholder = 'Filter the calls';
    filter.setAttribute('aria-label', 'Filter the calls');
    filter.addEventListener('input', () => {
        const typed = filter.value.toLowerCase();
        rows.forEach(row => { row.hidden = !row.textContent.toLowerCase().includes(typed); });
        figure.querySelectorAll('.matrix').forEach(matrix => { matrix.hidden = !matrix.querySelector('tbody tr:not([hidden])'); });
    });
    figure.prepend(filter);
});
