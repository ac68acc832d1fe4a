import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { writeBatchReport } from '@shellfleet/client';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startBrowser } from '../support/start-browser.ts';
import { type SyntheticOptions, syntheticBatch } from '../support/synthetic-batch.ts';

// The report of a batch of 10,000 tasks, compared with an earlier run, in a real browser.

const TASKS = 10_000;
/** Output of commands that attacks a page which shows it as HTML, or which embeds it in a script. */
const HOSTILE =
  '</script></pre><img src="http://203.0.113.9/" onerror="document.title=1"><script>document.title=1</script>\n';

let directory: string;
let browser: Browser;
let url: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-report-'));
  const write = async (name: string, options: SyntheticOptions) => {
    const lines = [...syntheticBatch(options)].map((result) => `${JSON.stringify(result)}\n`);
    await writeFile(join(directory, name), lines.join(''));
    return join(directory, name);
  };
  const compareWith = await write('earlier', { tasks: TASKS, seed: 2 });
  const results = await write('results', { tasks: TASKS, print: HOSTILE });
  const report = join(directory, 'report.html');
  await writeBatchReport({ results, report, compareWith });
  url = pathToFileURL(report).href;
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await rm(directory, { recursive: true, force: true });
});

/** Opens the report. Returns the page, and what it says in its console or requests besides itself. */
async function open(colorScheme: 'light' | 'dark', hash = ''): Promise<{ page: Page; said: string[] }> {
  const page = await browser.newPage({ colorScheme, viewport: { width: 1_280, height: 900 } });
  const said: string[] = [];
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(error.message));
  page.on('request', (request) => said.push(...(request.url().startsWith(url) ? [] : [request.url()])));
  await page.goto(`${url}${hash}`);
  return { page, said };
}

/** Returns texts whose contrast with the ground behind them is less than 4.5, as WCAG computes it. */
const FAINT_TEXTS = `(() => {
  const parse = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (color) => {
    const [r, g, b] = parse(color).map((part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const groundOf = (element) => {
    for (let own = element; own; own = own.parentElement) {
      const ground = getComputedStyle(own).backgroundColor;
      if (parse(ground)[3] !== 0) return ground;
    }
  };
  const faint = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() === '' || element.closest('script, noscript, title') || element.closest(':disabled')) continue;
    const style = getComputedStyle(element);
    const color = element.closest('svg') ? style.fill : style.color;
    const [a, b] = [light(color), light(groundOf(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    seen++;
    if (contrast < 4.5) faint.add(element.tagName + '.' + element.className + ' ' + color + ' ' + contrast.toFixed(2));
  }
  return { seen, faint: [...faint] };
})()`;

describe('the report of a batch of 10,000 tasks in a browser', () => {
  test.each(['light', 'dark'] as const)(
    'is readable in the %s scheme, is soon there, and asks for nothing',
    async (scheme) => {
      const { page, said } = await open(scheme);
      const rows = page.locator('.tasks tbody tr');
      expect(await rows.count()).toBe(50);
      const { seen, faint } = await page.evaluate<{ seen: number; faint: string[] }>(FAINT_TEXTS);
      expect(seen).toBeGreaterThan(500);
      expect(await page.getByText('not measured').count()).toBe(0);
      expect(faint).toEqual([]);
      const ground = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
      expect(ground).toBe(scheme === 'light' ? 'rgb(246, 247, 249)' : 'rgb(20, 23, 28)');
      const PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
      await page.waitForFunction(PAINTED); // the page may be complete before it is painted
      expect(await page.evaluate<number>(PAINTED)).toBeLessThan(5_000);
      expect(await page.evaluate<number>("document.querySelectorAll('*').length")).toBeLessThan(5_000);
      // The page is not wider than its window, also on a phone.
      await page.setViewportSize({ width: 390, height: 800 });
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(390);
      expect(said).toEqual([]);
      await page.close();
    },
  );

  test('shows output as text, which runs nothing', async () => {
    const { page, said } = await open('light');
    const shown = page.locator('#failures pre').filter({ hasText: 'onerror' });
    expect(await shown.first().textContent()).toContain(HOSTILE.trimEnd());
    expect(await page.locator('img, iframe, object, link').count()).toBe(0);
    await page.locator('#failures li a').first().click();
    await expect.poll(() => page.locator('#tasks output').textContent()).not.toContain('of 10,000');
    await page.locator('.tasks tbody button').first().click();
    expect(await page.locator('.tasks pre').textContent()).toContain(HOSTILE.trimEnd());
    expect(await page.title()).toMatch(/^results: [\d.]+ % passed$/);
    expect(said).toEqual([]);
    // Even a script that were in the page could not connect.
    await page.evaluate("fetch('http://203.0.113.9/').catch(() => {})");
    await expect.poll(() => said.join()).toContain('Content Security Policy');
    await page.close();
  });

  test('filters and sorts its tasks, by links, by pointer and by keyboard', async () => {
    const { page } = await open('dark');
    const said = page.locator('#tasks output');
    expect(await said.textContent()).toBe('1–50 of 10,000');
    const causes = page.locator('.causes > li');
    const count = await causes.first().locator('.count').textContent();
    await causes.first().locator('a').first().click();
    // A link changes the address, and the page follows in a later task.
    await expect.poll(() => said.textContent()).toBe(`1–50 of ${count}`);
    await page.goBack();
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByLabel('Search').fill('Task-0001');
    expect(await said.textContent()).toBe('1–10 of 10');
    const duration = page.getByRole('columnheader', { name: 'Duration' });
    await duration.getByRole('button').focus();
    await page.keyboard.press('Enter');
    expect(await duration.getAttribute('aria-sort')).toBe('descending');
    const [first, second] = await page.locator('.tasks tbody td:nth-child(5)').allTextContents();
    expect(toSeconds(first)).toBeGreaterThanOrEqual(toSeconds(second));
    // A bar of the timeline leads to its task, whose details are open if it did not pass.
    await page
      .locator('.strip')
      .first()
      .click({ position: { x: 3, y: 4 } });
    await expect.poll(() => said.textContent()).toMatch(/^1–1 of 1, of the task task-\d+$/);
    await page.close();
  });

  test('shows the task of a link when it is opened with one', async () => {
    const { page } = await open('light', '#tasks?verdict=infrastructure&change=newly+failing');
    expect(await page.locator('#tasks output').textContent()).toBe('No task is listed here');
    await page.close();
  });
});

const toSeconds = (text = '') => {
  const [, minutes = 0, seconds = 0, unit] = /^(?:(\d+) min )?([\d.]+) (m?s)$/.exec(text) ?? [];
  return (60 * Number(minutes) + Number(seconds)) / (unit === 'ms' ? 1_000 : 1);
};
