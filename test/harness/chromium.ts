import { type Browser, chromium, type Page } from 'playwright-core';
import { needProgram } from './programs.ts';

/** With these flags Chromium contacts no host but that of the page under test. */
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** A real Chromium. */
export function startChromium(): Promise<Browser> {
  const executablePath = needProgram('chromium');
  return chromium.launch({ executablePath, args: flags, headless: true, timeout: 120_000 });
}

/** Errors, warnings (such as a violation of the page's policy) and dialogs, as they occur. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = [];
  page.on('pageerror', (fault) => complaints.push(String(fault)));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return complaints;
}
