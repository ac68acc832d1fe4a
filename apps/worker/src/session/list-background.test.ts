import { sessionKeys } from '@shellfleet/protocol';
import { createSealer, createSealKey } from '@shellfleet/sealing';
import { describe, expect, test } from 'vitest';
import { createSessionRedaction } from '../redaction/session-redaction.ts';
import type { Shell } from '../shell/shell.ts';
import { listBackgroundProcesses } from './list-background.ts';

const TOKEN = 'correct-horse-battery-staple';

/** Lists a process whose command line the keeper cuts at 511 bytes. */
async function shown(
  command: string,
  redaction: { type: string; strategy: 'block' | 'redact' }[] = [],
  redactFormats = true,
): Promise<string> {
  const told = Buffer.from(command).subarray(0, 511).toString();
  const shell = { background: async () => [{ pid: 7, command: told }] } as unknown as Shell;
  const keys = sessionKeys('ns', 't', 's');
  const of = createSessionRedaction(
    { redaction, secrets: { TOKEN }, redactFormats },
    keys,
    createSealer([createSealKey()]),
  );
  const [process] = await listBackgroundProcesses(shell, of, new AbortController().signal);
  return process?.command ?? '';
}

describe('the list of background processes', () => {
  test('shows a command line without its secrets', async () => {
    expect(await shown(`curl -H ${TOKEN} host`)).toBe('curl -H [REDACTED_SECRET] host');
  });

  test('redacts a command line before it is cut', async () => {
    expect(await shown(`run ${TOKEN} ${'x'.repeat(300)}`)).toBe(`run [REDACTED_SECRET] ${'x'.repeat(178)}…`);
  });

  test('redacts tokens by format in lines of any length, although the output keeps them', async () => {
    const token = `ghp_${'aB3dE5gH7j'.repeat(4).slice(0, 36)}`;
    for (const length of [0, 600])
      expect(await shown(`run ${token} ${'x'.repeat(length)}`, [], false)).toMatch(/^run \[REDACTED_GITHUB_TOKEN\] /);
  });

  test('shows no part of a secret that the keeper has cut', async () => {
    for (let at = 440; at < 512; at += 1) {
      // Redacted text is shorter, so the end of a long line may move into the shown part.
      const command = `run ${TOKEN} ${`${TOKEN} `.repeat(20)}`.slice(0, at).padEnd(at, 'y') + TOKEN.repeat(3);
      const text = await shown(command);
      for (let from = 0; from + 5 <= TOKEN.length; from += 1) expect(text).not.toContain(TOKEN.slice(from, from + 5));
    }
  });

  test('withholds a command line in which a blocking rule matches', async () => {
    const rules = [{ type: 'email', strategy: 'block' as const }];
    expect(await shown('mail alice@example.com', rules)).toBe('[withheld: detected email]');
    expect(await shown(`mail alice@example.com ${'x'.repeat(600)}`, rules)).toBe('[withheld: detected email]');
  });
});
