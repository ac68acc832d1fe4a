import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOG_FIELDS } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';

const sources = globSync('**/*.ts', { cwd: import.meta.dirname })
  .filter((name) => !name.includes('.test.'))
  .map((name) => readFileSync(join(import.meta.dirname, name), 'utf8'));
const page =
  readFileSync(new URL('../../../docs/telemetry.md', import.meta.url), 'utf8').split('## Log events')[1] ?? '';

describe('docs/telemetry.md', () => {
  test('lists exactly the events of the worker’s log', () => {
    const listed = [...page.matchAll(/`([a-z-]+\.[a-z-]+)`/g)].map(([, name = '']) => name);
    const logged = sources.flatMap((text) =>
      [...text.matchAll(/\.(?:debug|info|warn|error|fatal)\([^;]*?'([a-z-]+\.[a-z-]+)'(?=\s*[),])/g)].map(
        ([, name = '']) => name,
      ),
    );
    expect(logged.length).toBeGreaterThan(20);
    expect(logged.filter((name) => !listed.includes(name))).toEqual([]);
    expect(listed.filter((name) => !sources.some((text) => text.includes(`'${name}'`)))).toEqual([]);
  });

  test('lists no field of a log line that the worker never writes', () => {
    const isWritten = (name: string) => sources.some((text) => new RegExp(`\\b${name}\\b'?\\s*[,:}]`).test(text));
    expect(Object.keys(LOG_FIELDS).filter((name) => !isWritten(name))).toEqual([]);
  });
});
