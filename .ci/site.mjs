// Opens every page of a site in Chromium and holds it to what a reader relies on: node site.mjs SITE [SLIDES [AUDITS]]
//
// Seen: no console error, no failed request, nothing requested from elsewhere; every internal link, anchor and download
// leads somewhere; nothing is wider than a phone, and no chapter of the course longer than four of its screens; plots
// follow the theme, on paper, too; search finds; a timeline is zoomed by keys; no serious or critical violation of
// accessibility (axe-core); valid HTML (html-validate); weight, and the time until a page can be used; the pages of the
// course on paper. Of slides: that keys and buttons turn them, that each is whole and a page on paper. Of the pages of
// audits: the same as of a site's pages, on a narrow phone, too.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { join, relative, resolve } from 'node:path';
import { HtmlValidate } from 'html-validate';
import { chromium } from 'playwright-core';

const SITE_BYTES = 10e6;
const PAGE_BYTES = 500e3;
const USABLE_MS = 1000;
const PRINT_PAGES = 80;
const COURSE_SCREENS = 4;

const site = resolve(process.argv[2]);
const pages = readdirSync(site, { recursive: true }).filter((name) => name.endsWith('.html') && name !== 'toc.html');
const url = (name) => pathToFileURL(`${site}/${name}`).href;
const faults = [];
const fault = (where, what) => faults.push(`${where}: ${what}`);

// Weight. The print page is all chapters at once.
const bytes = (path) => statSync(path).isDirectory()
  ? readdirSync(path).reduce((sum, name) => sum + bytes(join(path, name)), 0) : statSync(path).size;
const whole = bytes(site);
if (whole > SITE_BYTES) fault('the site', `${whole} bytes`);
for (const name of pages.filter((name) => name !== 'print.html')) {
  if (bytes(join(site, name)) > PAGE_BYTES) fault(name, `${bytes(join(site, name))} bytes`);
}

// HTML, with the rules that say what is broken, not those on taste.
const validator = new HtmlValidate({
  root: true,
  elements: ['html5'],
  rules: {
    'close-attr': 'error', 'close-order': 'error', 'element-permitted-content': 'error',
    'element-permitted-parent': 'error', 'no-dup-attr': 'error', 'no-dup-id': 'error',
    'no-unknown-elements': ['error', { exclude: ['mdbook-sidebar-scrollbox'] }], 'valid-id': ['error', { relaxed: true }],
    'void-content': 'error',
  },
});
function holdToHtml(name, path) {
  const report = validator.validateStringSync(readFileSync(path, 'utf8'), name);
  for (const { messages } of report.results) {
    messages.slice(0, 5).forEach((found) => fault(name, `line ${found.line}: ${found.message} (${found.ruleId})`));
  }
}
pages.forEach((name) => holdToHtml(name, join(site, name)));

const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--allow-file-access-from-files'];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8');
const anchors = new Map();
const links = [];
const colours = new Map();
let where = '';

async function open(options) {
  const page = await browser.newPage(options);
  page.on('console', (message) => message.type() === 'error' && fault(where, `console: ${message.text()}`));
  page.on('pageerror', (error) => fault(where, error));
  // A request that a navigation cut short has not failed.
  page.on('requestfailed', (request) => request.failure()?.errorText === 'net::ERR_ABORTED'
    || fault(where, `failed request: ${request.url()}`));
  page.on('request', (request) => /^(file|data|blob):/.test(request.url()) || fault(where, request.url()));
  return page;
}

// Evaluated, not added: the page's policy allows no script of others. What a page is, it is in both schemes; what can be seen
// depends on the colours.
async function holdToAccessibility(page, colorScheme = 'light') {
  await page.evaluate(axe);
  const rules = colorScheme === 'dark' ? { runOnly: ['color-contrast', 'link-in-text-block'] } : {};
  const found = await page.evaluate((rules) => window.axe.run(document, { resultTypes: ['violations'], ...rules }), rules);
  for (const violation of found.violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))) {
    const [first] = violation.nodes;
    fault(where, `${violation.impact}: ${violation.help} (${violation.nodes.length}): ${first.target} ${first.html.slice(0, 120)}`);
  }
}

// Where a page does not state its paper, that is A4.
async function pagesOnPaper(page) {
  const pdf = await page.pdf({ format: 'A4', preferCSSPageSize: true });
  return pdf.toString('latin1').match(/\/Type\s*\/Page[^s]/g).length;
}

const pagesWith = (text) => pages.filter((name) => name !== 'print.html' && readFileSync(join(site, name), 'utf8').includes(text));

const fills = () => [...document.querySelectorAll('svg.plot [class^="plot-"]')]
  .map((shape) => getComputedStyle(shape).color);

const measured = () => ({
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  // The page's own frame hides what sticks out of it; what may be wide scrolls within itself.
  wide: [...document.querySelectorAll('main *')].filter((element) => element.getBoundingClientRect().right > innerWidth + 1
    && !element.closest('.results-scroll, .table-wrapper, pre, figure.drawn, svg')).map((element) => element.outerHTML.slice(0, 80)),
  // What stands in a panel that no reader opened has no box.
  cut: [...document.querySelectorAll('svg.plot text')].filter((text) => {
    const [box, room] = [text.getBBox(), text.ownerSVGElement.viewBox.baseVal];
    return box.width > 0 && (box.x < -0.5 || box.x + box.width > room.width + 0.5 || box.y + box.height > room.height + 0.5);
  }).map((text) => text.textContent),
});

function holdToWidth({ wide, overflow }) {
  if (wide.length > 0) fault(where, `wider than the screen: ${wide[0]}`);
  if (overflow > 0) fault(where, `${overflow} px wider than the screen`);
}

function holdToTheme(light, drawn) {
  const same = drawn.filter((colour, i) => colour === light[i]).length;
  // What refers to a pattern keeps its reference; the pattern's own colours are among those that change.
  if (drawn.length > 0 && same > drawn.length / 2) fault(where, `${same} of ${drawn.length} shapes of plots stay light`);
}

for (const [colorScheme, width] of [['light', 1280], ['light', 360], ['dark', 1280]]) {
  const page = await open({ viewport: { width, height: 800 }, colorScheme });
  for (const name of pages) {
    where = `${name} at ${width} px, ${colorScheme}`;
    await page.goto(url(name), { waitUntil: 'load' });
    const { cut, ...room } = await page.evaluate(measured);
    holdToWidth(room);
    if (width === 360 && name !== 'print.html' && await page.locator('.predict').count() > 0) {
      await page.setViewportSize({ width: 390, height: 844 });
      const screens = await page.evaluate(() => document.querySelector('main').getBoundingClientRect().height / innerHeight);
      if (screens > COURSE_SCREENS) fault(where, `${screens.toFixed(2)} screens of a phone, with what is folded closed`);
      await page.setViewportSize({ width, height: 800 });
    }
    const seen = await page.evaluate(() => ({
      ids: [...document.querySelectorAll('[id]')].map((element) => element.id),
      links: [...document.querySelectorAll('a[href]')].map((link) => link.href),
      bare: [...document.querySelectorAll('main :is(h2, h3)[id]')].filter((heading) => !heading.querySelector('a.header'))
        .map((heading) => heading.id),
      plots: [...document.querySelectorAll('figure.plots svg')].filter((svg) => !svg.getAttribute('aria-labelledby')
        ?.split(' ').every((id) => document.getElementById(id)?.textContent)).length,
    }));
    const drawn = await page.evaluate(fills);
    if (width === 1280 && colorScheme === 'light') {
      const twice = seen.ids.filter((id, i) => seen.ids.indexOf(id) !== i);
      if (twice.length > 0) fault(where, `ids that occur twice: ${twice.slice(0, 5)}`);
      if (cut.length > 0) fault(where, `${cut.length} texts of plots are cut at the edge: ${cut[0]}`);
      if (seen.plots > 0) fault(where, `${seen.plots} plots without a title or a description`);
      if (seen.bare.length > 0 && name !== 'print.html') fault(where, `headings without a permalink: ${seen.bare}`);
      anchors.set(url(name), new Set(seen.ids));
      links.push(...seen.links.map((link) => [name, link]));
      colours.set(name, drawn);
    }
    if (colorScheme === 'dark') {
      const light = colours.get(name);
      holdToTheme(light, drawn);
      await page.emulateMedia({ media: 'print', colorScheme });
      const printed = await page.evaluate(fills);
      if (printed.some((colour, i) => colour !== light[i])) fault(where, 'plots are dark on paper');
      await page.emulateMedia({ media: null, colorScheme });
    }
    if (width === 1280 && name !== 'print.html') await holdToAccessibility(page, colorScheme);
  }
  await page.close();
}

for (const [name, link] of links) {
  const [target, anchor] = link.split('#');
  if (!target.startsWith('file:')) continue;
  if (!target.endsWith('.html') && !target.endsWith('/')) {
    if (!existsSync(fileURLToPath(target))) fault(name, `a download that is not there: ${link}`);
    continue;
  }
  const ids = anchors.get(target.replace(/\/$/, '/index.html'));
  if (!ids) fault(name, `a link to nothing: ${link}`);
  else if (anchor && !ids.has(decodeURIComponent(anchor))) fault(name, `an anchor that is not there: ${link}`);
}

// Each page but the first leads back, each but the last leads on.
const page = await open({ viewport: { width: 1280, height: 800 } });
where = 'previous and next';
await page.goto(url('index.html'), { waitUntil: 'load' });
const walked = ['index.html'];
for (let next = true; next && walked.length <= pages.length;) {
  next = await page.evaluate(() => document.querySelector('a[rel~="next"]')?.href);
  if (next) {
    await page.goto(next, { waitUntil: 'load' });
    walked.push(relative(site, fileURLToPath(next.split('#')[0])));
    if (!await page.evaluate(() => document.querySelector('a[rel~="prev"]'))) fault(next, 'no way back');
  }
}
const unseen = pages.filter((name) => name !== 'print.html' && !walked.includes(name));
if (unseen.length > 0) fault(where, `pages that nobody comes by: ${unseen}`);

where = 'search';
await page.goto(url('index.html'), { waitUntil: 'load' });
await page.click('#mdbook-search-toggle');
await page.waitForSelector('#mdbook-searchbar-outer:not(.searching)');
await page.locator('#mdbook-searchbar').pressSequentially('pinned');
const hits = await page.waitForSelector('#mdbook-searchresults li a', { timeout: 10_000 }).catch(() => null);
if (!hits) fault(where, 'nothing is found for "pinned"');

// Opens what is folded on a page.
const unfold = () => page.evaluate(() => document.querySelectorAll('details').forEach((folded) => { folded.open = true; }));

// A timeline is zoomed and moved by keys and by buttons, and stays within the page.
const [withSpans] = pagesWith('data-spans=');
if (!withSpans) fault('the site', 'no timeline that can be zoomed');
for (const width of withSpans ? [1280, 360] : []) {
  where = `${withSpans} at ${width} px, zoomed`;
  await page.setViewportSize({ width, height: 800 });
  await page.goto(url(withSpans), { waitUntil: 'load' });
  await unfold();
  const panel = page.locator('.timeline[data-spans]').first();
  await panel.getByRole('button', { name: 'Zoom', exact: true }).press('Enter');
  const said = () => panel.getByRole('status').textContent();
  const states = [await said()];
  for (const act of ['+', 'ArrowRight', '-', '0']) {
    await page.keyboard.press(act);
    states.push(await said());
  }
  const [all, near, later, wider, again] = states;
  if (!all.startsWith('All ') || new Set([all, near, later]).size < 3 || wider === later || again !== all) {
    fault(where, `keys: ${states.join(' | ')}`);
  }
  await panel.getByRole('button', { name: 'Zoom in' }).click();
  if (await said() !== near) fault(where, `the button to zoom: ${await said()}`);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (overflow > 0) fault(where, `${overflow} px wider than the screen`);
  await holdToAccessibility(page);
}
await page.setViewportSize({ width: 1280, height: 800 });

// The language of a listing is chosen by keys, and holds on the next page.
const withTabs = pagesWith('class="languages"');
if (withTabs.length < 2) fault('the site', 'no listings in several languages');
for (const [place, name] of withTabs.entries()) {
  where = `${name}, languages`;
  await page.goto(url(name), { waitUntil: 'load' });
  await unfold();
  const chosen = () => page.getByRole('tab', { selected: true }).first().textContent();
  if (place === 0) {
    await page.getByRole('tab').first().focus();
    await page.keyboard.press('ArrowRight');
  }
  const shown = await page.locator('.languages').first().locator('[role=tabpanel]:visible').getAttribute('data-language');
  if (await chosen() !== 'CUDA C++' || shown !== 'CUDA C++') fault(where, `${await chosen()} is chosen, ${shown} is shown`);
}

where = 'the time until a page can be used';
let slowest = 0;
for (const name of pages.filter((name) => name !== 'print.html')) {
  const times = [];
  for (let turn = 0; turn < 3; turn += 1) {
    await page.goto(url(name), { waitUntil: 'load' });
    times.push(await page.evaluate(() => performance.getEntriesByType('navigation')[0].loadEventStart));
  }
  // The best of three: what else the machine does is not the page's.
  const least = Math.min(...times);
  slowest = Math.max(slowest, least);
  if (least > USABLE_MS) fault(name, `${Math.round(least)} ms until it can be used`);
}

where = 'the course on paper';
await page.goto(url('print.html'), { waitUntil: 'load' });
const paper = await pagesOnPaper(page);
if (paper >= PRINT_PAGES) fault(where, `${paper} pages`);

// Slides: a deck is turned by keys, stands whole without its script, and is a page a slide on paper.
const slides = process.argv[3] && resolve(process.argv[3]);
const decks = slides ? readdirSync(slides).filter((name) => name.endsWith('.html')) : [];
const deckUrl = (name) => pathToFileURL(`${slides}/${name}`).href;
for (const [colorScheme, width] of slides ? [['light', 1280], ['dark', 1280], ['light', 360]] : []) {
  const deck = await open({ viewport: { width, height: 720 }, colorScheme });
  for (const name of decks) {
    where = `slides/${name} at ${width} px, ${colorScheme}`;
    await deck.goto(deckUrl(name), { waitUntil: 'load' });
    const count = await deck.locator('.slide').count();
    const shown = () => deck.evaluate(() => [...document.querySelectorAll('.slide')].findIndex((slide) => slide.classList.contains('current')));
    for (let slide = 0; slide < count; slide += 1) {
      const seen = await deck.evaluate(() => {
        // The page that lists the decks shows its slide as it stands.
        const one = document.querySelector('.slide.current') ?? document.querySelector('.slide');
        const page = document.documentElement;
        return { wide: page.scrollWidth - page.clientWidth, tall: one.scrollHeight - innerHeight, words: one.innerText.trim().length };
      });
      if (seen.wide > 0) fault(where, `slide ${slide + 1}: ${seen.wide} px wider than the screen`);
      if (width === 1280 && seen.tall > 0) fault(where, `slide ${slide + 1}: ${seen.tall} px taller than the screen`);
      if (seen.words === 0) fault(where, `slide ${slide + 1} is empty`);
      if (width === 1280) await holdToAccessibility(deck, colorScheme);
      await deck.keyboard.press('ArrowRight');
    }
    if (name === 'index.html') continue;
    if (await shown() !== count - 1) fault(where, `the arrow keys end at slide ${await shown() + 1} of ${count}`);
    await deck.keyboard.press('Home');
    await deck.keyboard.press(' ');
    await deck.getByRole('button', { name: 'Next slide' }).click();
    if (await shown() !== 2) fault(where, `Home, the space bar and the button lead to slide ${await shown() + 1}`);
    if (width !== 1280 || colorScheme !== 'light') continue;
    const printed = await pagesOnPaper(deck);
    if (printed !== count) fault(where, `${count} slides are ${printed} pages`);
    // The paper's width and height.
    await deck.setViewportSize({ width: 1122, height: 631 });
    await deck.emulateMedia({ media: 'print' });
    const cut = await deck.evaluate(() => [...document.querySelectorAll('.slide')].map((slide, place) => [place + 1, slide.scrollHeight - slide.clientHeight]).filter(([, over]) => over > 0));
    if (cut.length > 0) fault(where, `slides are cut on paper: ${JSON.stringify(cut)}`);
    await deck.emulateMedia({ media: null, colorScheme });
    await deck.setViewportSize({ width, height: 720 });
  }
  await deck.close();
}
if (slides) {
  where = 'slides without their script';
  const plain = await open({ viewport: { width: 1280, height: 720 }, javaScriptEnabled: false });
  await plain.goto(deckUrl('lesson-1.html'), { waitUntil: 'load' });
  for (const slide of await plain.locator('.slide').all()) {
    if (!await slide.isVisible()) fault(where, 'a slide is not shown');
  }
}

// The pages that an audit writes: each is a file of its own.
const audits = process.argv[4] ? readdirSync(process.argv[4]).filter((name) => name.endsWith('.html')) : [];
for (const name of audits) {
  const path = join(resolve(process.argv[4]), name);
  holdToHtml(name, path);
  if (bytes(path) > PAGE_BYTES) fault(name, `${bytes(path)} bytes`);
  const light = [];
  for (const [colorScheme, width] of [['light', 1280], ['light', 400], ['dark', 1280]]) {
    const audit = await open({ viewport: { width, height: 800 }, colorScheme });
    where = `${name} at ${width} px, ${colorScheme}`;
    await audit.goto(pathToFileURL(path).href, { waitUntil: 'load' });
    const { cut, ...room } = await audit.evaluate(measured);
    holdToWidth(room);
    if (cut.length > 0) fault(where, `${cut.length} texts of plots are cut at the edge: ${cut[0]}`);
    const drawn = await audit.evaluate(fills);
    if (drawn.length === 0) fault(where, 'no picture');
    if (colorScheme === 'dark') holdToTheme(light, drawn);
    else if (width === 1280) light.push(...drawn);
    await holdToAccessibility(audit, colorScheme);
    await audit.close();
  }
}

await browser.close();
faults.forEach((text) => console.error(text));
console.log(`${pages.length} pages, ${(whole / 1e6).toFixed(1)} MB, ${links.length} links, ${paper} pages on paper, `
  + `${slides ? `${decks.length} pages of slides, ` : ''}${audits.length} pages of audits, usable after ${Math.round(slowest)} ms at most, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
