// Listings in several languages are tabs, and what a reader chose holds for all of them. Without this script they follow each
// other.
'use strict';

(() => {
    const KEPT = 'syncscope-language';
    const storage = act => {
        try {
            return act(window.localStorage);
        } catch {
            // A browser may keep nothing.
            return null;
        }
    };

    const groups = [...document.querySelectorAll('.languages')].filter(group => group.children.length > 1);
    const tabbed = groups.map((group, number) => {
        const panels = [...group.children];
        const tabs = panels.map((panel, place) => {
            const tab = document.createElement('button');
            const id = `language-${number}-${place}`;
            tab.type = 'button';
            tab.id = `${id}-tab`;
            tab.textContent = panel.dataset.language;
            tab.setAttribute('role', 'tab');
            tab.setAttribute('aria-controls', id);
            panel.id = id;
            panel.setAttribute('role', 'tabpanel');
            panel.setAttribute('aria-labelledby', tab.id);
            panel.querySelector('.language').remove();
            return tab;
        });
        const list = document.createElement('div');
        list.setAttribute('role', 'tablist');
        list.setAttribute('aria-label', 'Language');
        list.append(...tabs);
        group.prepend(list);
        return { panels, tabs };
    });

    const choose = language => tabbed.forEach(({ panels, tabs }) => {
        const chosen = Math.max(panels.findIndex(panel => panel.dataset.language === language), 0);
        panels.forEach((panel, place) => { panel.hidden = place !== chosen; });
        tabs.forEach((tab, place) => {
            tab.setAttribute('aria-selected', `${place === chosen}`);
            tab.tabIndex = place === chosen ? 0 : -1;
        });
    });
    const keep = language => {
        choose(language);
        storage(kept => kept.setItem(KEPT, language));
    };

    tabbed.forEach(({ tabs }) => tabs.forEach((tab, place) => {
        tab.addEventListener('click', () => keep(tab.textContent));
        tab.addEventListener('keydown', event => {
            const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
            if (step) {
                // Elsewhere these keys lead to another chapter.
                event.stopPropagation();
                const next = tabs[(place + step + tabs.length) % tabs.length];
                keep(next.textContent);
                next.focus();
            }
        });
    }));
    choose(storage(kept => kept.getItem(KEPT)));
})();
