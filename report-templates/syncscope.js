// Keyboard access that mdBook's pages lack: the toggle of the sidebar is a label, and code that is wider than the page
// cannot be scrolled with the keyboard.
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
document.querySelectorAll('main pre > code').forEach(code => {
    code.tabIndex = 0;
});
