// One slide at a time: by buttons, keys, or a link to it. Without this script the slides stand below each other.
'use strict';

(() => {
    const root = document.documentElement;
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const paint = isDark => {
        root.classList.toggle('navy', isDark);
        root.classList.toggle('light', !isDark);
    };
    paint(dark.matches);
    dark.addEventListener('change', () => paint(dark.matches));

    const element = (name, attributes, ...children) => {
        const made = document.createElement(name);
        Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
        made.append(...children);
        return made;
    };
    const button = (sign, label, act) => {
        const made = element('button', { type: 'button', title: label, 'aria-label': label }, sign);
        made.addEventListener('click', act);
        return made;
    };
    const darker = button('◐', 'Dark or light', () => paint(root.classList.contains('light')));
    const controls = element('nav', { class: 'controls', 'aria-label': 'Slides' }, darker);
    document.querySelector('footer').append(controls);
    const keys = { t: () => darker.click() };

    if (document.body.hasAttribute('data-deck')) {
        const slides = [...document.querySelectorAll('.slide')];
        slides.forEach((slide, place) => { slide.id ||= `slide-${place + 1}`; });
        const count = element('span', { role: 'status' });
        let current = 0;
        const show = place => {
            current = Math.min(Math.max(place, 0), slides.length - 1);
            slides.forEach((slide, at) => slide.classList.toggle('current', at === current));
            count.textContent = `${current + 1} / ${slides.length}`;
            scrollTo(0, 0);
        };
        const turn = place => {
            show(place);
            history.replaceState(null, '', `#${slides[current].id}`);
        };
        const linked = () => {
            const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
            show(Math.max(slides.indexOf(named?.closest('.slide')), 0));
        };
        const [back, on] = [() => turn(current - 1), () => turn(current + 1)];
        controls.prepend(button('←', 'Previous slide', back), count, button('→', 'Next slide', on));
        Object.assign(keys, {
            ArrowRight: on, ArrowDown: on, PageDown: on, ' ': on, ArrowLeft: back, ArrowUp: back, PageUp: back,
            Home: () => turn(0), End: () => turn(slides.length - 1),
        });
        document.body.classList.add('one');
        addEventListener('hashchange', linked);
        linked();
    }
    document.addEventListener('keydown', event => {
        // A key that opens an answer, or presses a button, does that alone.
        const isTaken = event.key === ' ' && event.target.closest('summary, button, a');
        if (event.key in keys && !isTaken && !event.ctrlKey && !event.altKey && !event.metaKey) {
            event.preventDefault();
            keys[event.key]();
        }
    });
})();
