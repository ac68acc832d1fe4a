import type { Session, SessionInfo } from '@shellfleet/client';
import { abortable } from '@shellfleet/concurrency';
import { resolveSandbox, SESSION_STATES, sessionSpecSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { findSessionOf, sessionArgument } from '../commands/session-of-call.ts';
import { withinAnswer } from '../commands/within-answer.ts';
import { defineMcpTool } from './define-tool.ts';

export const restartSession = defineMcpTool({
  name: 'restart_session',
  title: 'Restart a session',
  description:
    'Replaces the shell of a session by a fresh one: variables, functions, directory and background processes are gone, and files stay. It takes its turn among the commands of the session.',
  input: z.strictObject({ session: sessionArgument }),
  output: z.object({ session: z.string(), epoch: z.number().describe('Number of shells that the session has had.') }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  scope: 'submit',
  async run({ session: name }, call) {
    const session = await findSessionOf(call, name);
    const why = `The restart of ${session.id} waits for its turn, and takes place after the commands before it.`;
    await withinAnswer(call, why, (signal) => abortable(session.restart(), signal));
    const { epoch } = await session.info();
    return { structured: { session: session.id, epoch }, text: `${session.id} has a fresh shell (number ${epoch}).` };
  },
});

const infoSchema = z.object({
  session: z.string(),
  state: z.enum(SESSION_STATES),
  epoch: z.number().describe('Number of shells that the session has had. A higher one means that state was lost.'),
  queued_commands: z.number(),
  running_command_id: z.string().optional(),
  held_command_id: z.string().optional().describe('The command that waits for the approval of a person.'),
  background: z.array(z.object({ pid: z.number(), command: z.string() })),
  image: z.string().optional(),
  cwd: z.string().optional().describe('Directory in which its shell starts. Absent: the policy chooses it.'),
  policy: z.string().describe('Kind of the sandbox.'),
  sandbox_mode: z.string().describe('What commands may write.'),
  network: z.string().describe('What commands may reach.'),
  allowed_hosts: z.array(z.string()).optional(),
  approval: z.string().describe('Which commands wait for the approval of a person.'),
  memory_bytes: z.number().optional(),
  command_timeout_ms: z.number(),
});

export const sessionInfo = defineMcpTool({
  name: 'session_info',
  title: 'Describe a session',
  description: 'Returns what a session does now, and what its sandbox allows: image, directory, network, limits.',
  input: z.strictObject({ session: sessionArgument }),
  output: infoSchema,
  annotations: { readOnlyHint: true, openWorldHint: false },
  scope: 'read',
  async run({ session: name }, call) {
    const session = await findSessionOf(call, name);
    const structured = toInfo(session, await session.info());
    const { state, sandbox_mode, network, approval } = structured;
    const text = `Session ${session.id} is ${state}. Sandbox: ${sandbox_mode}; network: ${network}; approvals: ${approval}.`;
    return { structured, text };
  },
});

function toInfo(session: Session, info: SessionInfo): z.output<typeof infoSchema> {
  const spec = sessionSpecSchema.parse(session.spec);
  const { approval, cwd, limits } = spec;
  const { mode, network, allowedHosts } = resolveSandbox(spec);
  return {
    ...{ session: info.id, state: info.state, epoch: info.epoch, queued_commands: info.queuedCommands },
    ...(info.runningCommandId === undefined ? {} : { running_command_id: info.runningCommandId }),
    ...(info.heldCommandId === undefined ? {} : { held_command_id: info.heldCommandId }),
    background: info.background,
    ...(info.image === undefined ? {} : { image: info.image }),
    ...(cwd === undefined ? {} : { cwd }),
    ...{ policy: spec.policy.type, sandbox_mode: mode, network },
    ...(allowedHosts.length === 0 ? {} : { allowed_hosts: [...allowedHosts] }),
    approval: approval === undefined ? 'none' : typeof approval === 'string' ? approval : 'on-request',
    ...(limits.memoryBytes === undefined ? {} : { memory_bytes: limits.memoryBytes }),
    command_timeout_ms: spec.commandTimeoutMs,
  };
}
