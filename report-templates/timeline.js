// A recorded timeline, to be looked at closely: by buttons, keys, a drag, or the wheel with Ctrl. Without this script the
// picture stands as it was drawn.
'use strict';

(() => {
    const [NAME, BAR, TEXT, GAP, AXIS, LETTER, TICK] = [20, 24, 18, 12, 28, 8, 110];
    // The shortest part that is shown, in nanoseconds.
    const SHORTEST = 100;
    const UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

    const unitOf = ns => UNITS.find(([factor]) => ns >= factor) || UNITS[UNITS.length - 1];
    const duration = ns => {
        const [factor, unit] = unitOf(ns);
        return `${Number((ns / factor).toPrecision(4))} ${unit}`;
    };
    // The next greater of 1, 2 and 5 times a power of ten.
    const rounded = step => {
        const power = 10 ** Math.floor(Math.log10(step));
        return [1, 2, 5, 10].map(factor => factor * power).find(round => round >= step * 0.9999);
    };

    const attributed = (made, attributes) => {
        Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
        return made;
    };

    const closer = panel => {
        const { end, kinds, names, lanes } = JSON.parse(panel.dataset.spans);
        const picture = panel.querySelector('svg');
        const title = picture.querySelector('title').textContent;
        const height = lanes.length * (NAME + BAR + TEXT + GAP) + AXIS;
        let [from, to, width] = [0, end, 0];

        const element = (name, attributes, ...children) => {
            const made = attributed(document.createElement(name), attributes);
            made.append(...children);
            return made;
        };
        const shape = (name, attributes, text = '') => {
            const made = attributed(document.createElementNS(picture.namespaceURI, name), attributes);
            made.textContent = text;
            return made;
        };
        const svg = shape('svg', { class: 'plot', 'aria-hidden': 'true' });
        const draw = (name, attributes, text) => {
            const drawn = shape(name, attributes, text);
            svg.append(drawn);
            return drawn;
        };

        const x = ns => (ns - from) / (to - from) * width;
        const drawAxis = () => {
            const step = rounded((to - from) * TICK / width);
            const [factor, unit] = unitOf(to);
            const digits = Math.max(0, -Math.floor(Math.log10(step / factor) + 1e-9));
            const bottom = height - AXIS;
            for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) {
                draw('path', { d: `M${x(tick)} 0V${bottom}`, class: 'plot-grid' });
                const anchor = x(tick) < 40 ? 'start' : x(tick) > width - 60 ? 'end' : 'middle';
                const text = `${(tick / factor).toFixed(digits)} ${unit}`;
                draw('text', { x: x(tick), y: bottom + 18, 'text-anchor': anchor, class: 'plot-muted' }, text);
            }
            draw('path', { d: `M0 ${bottom}H${width}`, class: 'plot-muted' });
        };
        // How many spans are seen.
        const drawLane = ([name, numbers], top) => {
            draw('text', { x: 0, y: top + 14, class: 'plot-text', 'font-weight': 'bold' }, name);
            let [seen, free] = [0, 0];
            for (let place = 0; place < numbers.length; place += 4) {
                const [kind, what, start, stop] = numbers.slice(place, place + 4);
                if (stop < from || start > to) {
                    continue;
                }
                seen += 1;
                const [kindName, paint, fill] = kinds[kind];
                const [left, right] = [Math.max(x(start), -2), Math.min(x(stop), width + 2)];
                const bar = { x: left, y: top + NAME, width: Math.max(right - left, 0.5), height: BAR };
                const note = `${names[what]} (${kindName}): ${duration(stop - start)}, from ${duration(start)} on`;
                draw('rect', { ...bar, class: paint, fill, stroke: 'currentColor' }).append(shape('title', {}, note));
                const [at, room] = [Math.max(left, 0), names[what].length * LETTER];
                if (at >= free && Math.min(right, width) - at >= room) {
                    draw('text', { x: at, y: top + NAME + BAR + 14, class: 'plot-text' }, names[what]);
                    free = at + room;
                }
            }
            return seen;
        };
        const said = element('p', { class: 'source', role: 'status' });
        const show = () => {
            width = Math.max(view.clientWidth, 200);
            svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
            svg.replaceChildren();
            drawAxis();
            const counts = lanes.map((lane, place) => drawLane(lane, place * (NAME + BAR + TEXT + GAP)));
            const seen = counts.reduce((sum, count) => sum + count, 0);
            const part = from === 0 && to === end ? `All ${duration(end)}` : `From ${duration(from)} to ${duration(to)}`;
            said.textContent = `${part}: ${seen} ${seen === 1 ? 'operation' : 'operations'}.`;
        };
        // Shows a part of this length from here on, within the whole.
        const look = (start, length) => {
            const shown = Math.min(Math.max(length, SHORTEST), end);
            from = Math.min(Math.max(start, 0), end - shown);
            to = from + shown;
            show();
        };
        const zoom = (factor, share = 0.5) => {
            const length = Math.min(Math.max((to - from) * factor, SHORTEST), end);
            look(from + (to - from - length) * share, length);
        };
        const move = share => look(from + (to - from) * share, to - from);

        const acts = [
            ['+', 'Zoom in', () => zoom(0.5)], ['−', 'Zoom out', () => zoom(2)],
            ['←', 'Earlier', () => move(-0.25)], ['→', 'Later', () => move(0.25)], ['All', 'Show all', () => look(0, end)],
        ];
        const keys = {
            '+': 0, '=': 0, ArrowUp: 0, '-': 1, ArrowDown: 1, ArrowLeft: 2, ArrowRight: 3, 0: 4, Home: 4,
        };
        const buttons = acts.map(([sign, label, act]) => {
            const button = element('button', { type: 'button', title: label, 'aria-label': label }, sign);
            button.addEventListener('click', act);
            return button;
        });
        const view = element('div', {
            class: 'view', tabindex: 0, role: 'group',
            'aria-label': `${title}: plus and minus zoom, the arrow keys move, 0 shows all`,
        }, svg);
        view.addEventListener('keydown', event => {
            if (event.key in keys && !event.ctrlKey && !event.altKey && !event.metaKey) {
                event.preventDefault();
                event.stopPropagation();
                acts[keys[event.key]][2]();
            }
        });
        view.addEventListener('wheel', event => {
            if (event.ctrlKey) {
                event.preventDefault();
                const box = svg.getBoundingClientRect();
                zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
            }
        }, { passive: false });
        view.addEventListener('pointerdown', event => {
            const [begun, start] = [event.clientX, from];
            const drag = moved => {
                look(start - (moved.clientX - begun) / svg.getBoundingClientRect().width * (to - from), to - from);
            };
            view.setPointerCapture(event.pointerId);
            view.addEventListener('pointermove', drag);
            const ended = () => view.removeEventListener('pointermove', drag);
            view.addEventListener('pointerup', ended, { once: true });
            view.addEventListener('pointercancel', ended, { once: true });
        });
        new ResizeObserver(() => view.clientWidth === width || show()).observe(view);
        const whole = element('div', {}, element('p', { class: 'controls' }, ...buttons), view, said);
        return { whole, view, show };
    };

    document.querySelectorAll('.timeline[data-spans]').forEach(panel => {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = 'Zoom';
        button.setAttribute('aria-expanded', 'false');
        let opened;
        button.addEventListener('click', () => {
            opened ??= closer(panel);
            const isOpen = panel.classList.toggle('enlarged');
            button.setAttribute('aria-expanded', `${isOpen}`);
            button.textContent = isOpen ? 'Close' : 'Zoom';
            if (isOpen) {
                button.before(opened.whole);
                opened.show();
                opened.view.focus();
            } else {
                opened.whole.remove();
            }
        });
        panel.querySelector('.source').before(button);
    });
})();
