import { type Browser, chromium } from 'playwright-core';

/** Starts Debian's Chromium without a window. Its own sandbox needs a user that is not root. */
export function startBrowser(): Promise<Browser> {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath: '/usr/bin/chromium', args });
}
