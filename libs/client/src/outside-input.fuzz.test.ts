import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { validateRedaction } from '@shellfleet/policy';
import { parseOrThrow, sessionSpecSchema } from '@shellfleet/protocol';
import { fuzz, fuzzAsync, fuzzText, refusalOf, refusalOfAsync } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { batchOptionsSchema } from './batch/batch-options.ts';
import { checkTask } from './batch/check-task.ts';
import { readEarlier } from './batch/results-file.ts';
import { resolveSettings } from './connect-settings.ts';
import { parseSandboxPath } from './files/file-steps.ts';
import { parseCursor } from './stream/stream-reader.ts';
import { checkCommand } from './submit/parse-command.ts';

// Input from a caller, a file or an environment is either used, or refused by a ShellfleetError that names the field.

const any = (value: unknown) => value as never;

describe('checks of outside input', () => {
  test('accept a script, or name its field in the refusal', () => {
    fuzz(['true', 'echo ä'], (script) => {
      const refusal = refusalOf(() => checkCommand(script, {}));
      if (refusal !== undefined)
        expect(refusal).toMatchObject({ code: 'COMMAND_INVALID', context: { issues: [{ path: 'script' }] } });
    });
  });

  test('accept options of a command, or name the refused field', () => {
    const valid = [
      { timeoutMs: 5, env: { A: 'x' }, cwd: '/', stdin: 'in', idempotencyKey: 'k', onOutput: () => {} },
      { stdin: [new Uint8Array(3)], retry: 'never', durable: true, signal: new AbortController().signal },
    ];
    fuzz(valid, (options) => {
      const refusal = refusalOf(() => checkCommand('true', any(options)));
      const paths = ((refusal?.context.issues ?? []) as { path: string }[]).map(({ path }) => path);
      for (const path of paths) expect(path).toMatch(/^options/);
    });
  });

  test.each([[[]], [['timeoutMs']], [5], ['timeoutMs'], [() => 5]])(
    'refuse options that are no object: %o',
    (options) => {
      expect(refusalOf(() => checkCommand('true', any(options)))?.context.issues).toEqual([
        { path: 'options', message: 'must be an object' },
      ]);
    },
  );

  test('accept options of connect and its environment, or refuse them', async () => {
    const options = { redisUrl: 'redis://h:1', namespace: 'n', tenant: 't', sealKeys: ['k'], interceptors: [() => {}] };
    const nowhere = { SHELLFLEET_STATE_DIR: '/nonexistent' };
    await fuzzAsync(
      [options],
      async (given) => void (await refusalOfAsync(() => resolveSettings(any(given), nowhere))),
    );
    const env = { SHELLFLEET_REDIS_URL: 'redis://h:1', SHELLFLEET_NAMESPACE: 'n', SHELLFLEET_SEAL_KEY: 'a,b' };
    await fuzzAsync([env], async (given) => {
      const texts = Object.entries(given ?? {}).map(([name, value]) => [name, typeof value === 'string' ? value : 'x']);
      await refusalOfAsync(() => resolveSettings({}, { ...Object.fromEntries(texts), ...nowhere }));
    });
  });

  test('accept a task and the options of a batch, or refuse them', () => {
    const tasks = [
      { id: 'a', script: 'true', spec: { env: {} }, files: { '/x': 'x' }, timeoutMs: 5 },
      { id: 'b', script: ['true'] },
    ];
    fuzz(tasks, (task) => void refusalOf(() => checkTask(task)));
    fuzz(tasks, (task) => void refusalOf(() => checkTask(task, { spec: { env: { A: 'a' } }, timeoutMs: 5 })));
    const options = [{ concurrency: 5, resumeFrom: '/x', retries: { infra: 1, command: 2 } }];
    fuzz(
      options,
      (given) => void refusalOf(() => parseOrThrow(batchOptionsSchema, given, 'COMMAND_INVALID', 'The batch')),
    );
  });

  test('read the ids of ended tasks from any lines of an earlier batch', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sf-fuzz-'));
    try {
      const lines: string[] = [];
      fuzzText(['{"id":"a","outcome":"success"}', '{"id":"b","outcome":"lost"}'], (text) => void lines.push(text));
      const path = join(directory, 'out.jsonl');
      await writeFile(path, `${lines.join('\n')}\n{"id":"last","outcome":"failure"}\n{"id":"torn","outc`);
      const { finished } = await readEarlier(path);
      expect(finished.has('last')).toBe(true);
      expect(finished.has('torn')).toBe(false);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  test('accept a position and a path, or refuse them', () => {
    fuzz(['1-0', '123456-7'], (after) => {
      if (refusalOf(() => parseCursor(after)) === undefined && after !== undefined) expect(after).toMatch(/^\d+-\d+$/);
    });
    fuzz(['/x', '/workspace/ä'], (path) => {
      if (refusalOf(() => parseSandboxPath(path)) === undefined) expect(path).toMatch(/^\//);
    });
  });

  test('compile redaction rules that parse, or refuse them', () => {
    const rule = (pattern: string) => ({ redaction: [{ type: 'own', strategy: 'redact', pattern }] });
    fuzz([{ redaction: [{ type: 'email', strategy: 'mask' }] }, rule('a+b'), rule('(x|y){3}')], (spec) => {
      const parsed = sessionSpecSchema.safeParse(spec);
      if (parsed.success) refusalOf(() => validateRedaction(parsed.data));
    });
    fuzzText(['a+b', '(?:x|[^y]{1,9})$', '\\d{3}-\\w*'], (pattern) => {
      const parsed = sessionSpecSchema.safeParse(rule(pattern));
      if (parsed.success) refusalOf(() => validateRedaction(parsed.data));
    });
  });
});
