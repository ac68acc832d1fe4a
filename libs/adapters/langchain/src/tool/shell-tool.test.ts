import { ToolMessage } from '@langchain/core/messages';
import { type Session, type SessionSpec, ShellfleetError } from '@shellfleet/client';
import { fromWireResult } from '@shellfleet/protocol';
import { sampleResult } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { toShellSpec } from '../options/shell-tool-options.ts';
import { shellInputSchema } from './shell-input.ts';
import { shellTool } from './shell-tool.ts';
import { describeShellTool, SHELL_TOOL_DESCRIPTION } from './tool-description.ts';

const result = fromWireResult(
  { commandId: 'c', sessionId: 's' },
  sampleResult('success', {
    stdout: 'done\n',
    totals: { stdoutLines: 1, stdoutBytes: 5, stderrLines: 0, stderrBytes: 0 },
  }),
);

/** A session whose commands succeed, with further behaviour. */
function sessionThat(behaves: Partial<Session> = {}): Session {
  return {
    submit: async () => ({ result: async () => result }) as never,
    restart: async () => {},
    ...behaves,
  } as Session;
}
const toCall = (args: object) => ({ name: 'shell', args, id: 'call-1', type: 'tool_call' as const });

describe('the shell tool', () => {
  // S1-03
  test('is called shell, and takes another name and description', async () => {
    expect(shellTool(sessionThat())).toMatchObject({ name: 'shell', description: SHELL_TOOL_DESCRIPTION });
    const other = shellTool(sessionThat(), { toolName: 'bash', toolDescription: 'Runs it.' });
    expect(other).toMatchObject({ name: 'bash', description: 'Runs it.' });
    expect(await other.invoke({ ...toCall({ command: 'true' }), name: 'bash' })).toMatchObject({ name: 'bash' });
  });

  // S1-02, S2-01
  test('describes the rules of a persistent shell and what its sandbox allows', () => {
    for (const rule of ['stays open', '`pwd`', 'parent directories', 'absolute paths', 'quote', '`&&` or `;`', 'cut'])
      expect(SHELL_TOOL_DESCRIPTION).toContain(rule);
    const spec = { sandbox: { mode: 'read-only' }, approval: 'on-request' } as const;
    expect(describeShellTool(toShellSpec({ spec }).resolved)).toBe(
      `${SHELL_TOOL_DESCRIPTION} A command is ended after 30 seconds, and at most 100 lines of each output stream are shown. The network cannot be reached. Only temporary files can be written. Some commands wait until a person has allowed them.`,
    );
    const limited: SessionSpec = { sandbox: { network: 'limited', allowedHosts: ['example.org'] } };
    expect(describeShellTool(toShellSpec({ spec: limited }).resolved)).toMatch(
      /only these hosts can be reached: example\.org\.$/,
    );
    expect(describeShellTool(toShellSpec({ spec: { policy: 'host' } }).resolved)).toMatch(/are shown\.$/);
  });

  // S1-28
  test('has an input of a command and a restart, both optional, and nothing else', () => {
    const { properties, required } = z.toJSONSchema(shellInputSchema, { io: 'input' });
    expect([Object.keys(properties ?? {}), required]).toEqual([['command', 'restart'], undefined]);
    for (const args of [
      { command: 'ls' },
      { command: 'ls', restart: false },
      { restart: true },
      { restart: true, command: null },
    ])
      expect(shellInputSchema.safeParse(args).success).toBe(true);
  });

  // S1-29, S1-30
  test.each([
    ['neither', {}, "Shell tool requires either 'command' or 'restart'."],
    ['a restart that is false', { restart: false }, "Shell tool requires either 'command' or 'restart'."],
    ['both', { command: 'ls', restart: true }, "Specify only one of 'command' or 'restart'."],
    ['an empty command and a restart', { command: '', restart: true }, "Specify only one of 'command' or 'restart'."],
  ])('refuses %s', async (_what, args, message) => {
    expect(shellInputSchema.safeParse(args).error?.issues.map((issue) => issue.message)).toEqual([message]);
    await expect(shellTool(sessionThat()).invoke(args)).rejects.toThrow(message);
  });

  // S1-44
  test('answers an empty command with what it expects', async () => {
    expect(await shellTool(sessionThat()).invoke(toCall({ command: '' }))).toMatchObject({
      content: "Shell tool expects a 'command' string when restart is not requested.",
      status: 'error',
    });
  });

  // S1-52, S1-50
  test('answers a call with an id by a message, and one without by a string', async () => {
    const tool = shellTool(sessionThat());
    const message = (await tool.invoke(toCall({ command: 'make' }))) as unknown;
    expect(message).toBeInstanceOf(ToolMessage);
    expect(message).toMatchObject({
      name: 'shell',
      tool_call_id: 'call-1',
      status: 'success',
      content: 'done',
      artifact: {
        timed_out: false,
        exit_code: 0,
        truncated_by_lines: false,
        truncated_by_bytes: false,
        total_lines: 1,
        total_bytes: 5,
        redaction_matches: {},
      },
    });
    expect(await tool.invoke({ command: 'make' })).toBe('done');
  });

  // S1-43
  test('restarts the shell on request, and reports when that failed', async () => {
    expect(await shellTool(sessionThat()).invoke(toCall({ restart: true }))).toMatchObject({
      content: 'Shell session restarted.',
      status: 'success',
    });
    const broken = sessionThat({
      restart: () => Promise.reject(new ShellfleetError('SESSION_START_FAILED', 'Startup command 1 failed.')),
    });
    expect(await shellTool(broken).invoke(toCall({ restart: true }))).toMatchObject({
      content: 'Failed to restart shell session.',
      status: 'error',
      artifact: { reason: 'Startup command 1 failed.' },
    });
  });

  test('answers an invalid command with the reason, and throws what a model cannot mend', async () => {
    const failing = (code: 'COMMAND_INVALID' | 'QUEUE_UNAVAILABLE') =>
      shellTool(sessionThat({ submit: () => Promise.reject(new ShellfleetError(code, 'The reason.')) }));
    expect(await failing('COMMAND_INVALID').invoke(toCall({ command: 'a\0' }))).toMatchObject({
      content: 'Error: The reason.',
      status: 'error',
    });
    await expect(failing('QUEUE_UNAVAILABLE').invoke(toCall({ command: 'ls' }))).rejects.toThrow('The reason.');
  });

  test('submits a call that LangGraph repeats under the same key', async () => {
    const keys: (string | undefined)[] = [];
    const session = sessionThat({
      submit: async (_script, options) => {
        keys.push(options?.idempotencyKey);
        return { result: async () => result } as never;
      },
    });
    const invoke = (step?: string) =>
      shellTool(session).invoke(toCall({ command: 'ls' }), {
        configurable: step === undefined ? {} : { checkpoint_ns: step },
      });
    await invoke('tools:1');
    await invoke('tools:1');
    await invoke('tools:2');
    await invoke();
    expect([keys[0] === keys[1], keys[0] === keys[2], keys[3]]).toEqual([true, false, undefined]);
  });
});
