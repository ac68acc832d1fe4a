import { type WiderSettings, widenSandbox } from '@shellfleet/policy';
import {
  type CommandPayload,
  ensureShellfleetError,
  type ResolvedSessionSpec,
  ShellfleetError,
  type WireResult,
} from '@shellfleet/protocol';
import { createSessionEgress } from '../egress/create-session-egress.ts';
import type { EntryResult, EntryRun } from '../run/entry-run.ts';
import { OutputForgotten } from '../run/output-store.ts';
import type { Outside } from '../run/outside.ts';
import { failedEntry, lostEntry } from '../run/results.ts';
import { runCommand } from '../run/run-command.ts';
import type { SessionContext } from '../run/session-context.ts';
import type { Beside } from '../sandbox/sandbox.ts';
import { describeShell } from '../shell/describe-shell.ts';
import { SessionShell } from '../shell/session-shell.ts';
import { isUnsafe } from './unsafe-variables.ts';

// A command that leaves the sandbox of its session: a shell of its own in a second sandbox, beside that of the session.
//
// OUTSIDE-1. Of the session it has the files of its workspace, the directory, and the variables of the spec with its
//            secrets. No variable, function, alias, trap or option of the session's shell is in it, and no startup
//            command has run.
// OUTSIDE-2. Its programs and libraries come from folders that the session cannot write to, and its shell reads no file
//            before the command.
// OUTSIDE-3. It runs one command. Its sandbox is removed with all processes in it before the Result is stored, however
//            the command ended. A removal that the engine does not make then is made by the next sweep.
// OUTSIDE-4. No worker takes its sandbox for that of the session: a worker that starts removes it.

/** Returns how commands of a session leave its sandbox. `settings` is undefined where the operator lets nothing out. */
export function createOutside(spec: ResolvedSessionSpec, settings: WiderSettings | undefined): Outside {
  const wider = widenSandbox(spec, settings);
  const refusal = 'refusal' in wider ? wider.refusal : refuseVariables({ ...spec.env, ...spec.secrets });
  if ('refusal' in wider || refusal !== undefined) {
    return { refusal, sandbox: undefined, run: () => Promise.reject(new Error(`nothing may run outside: ${refusal}`)) };
  }
  return {
    refusal: undefined,
    sandbox: wider.spec.sandbox,
    async run(run, payload, session) {
      try {
        if (run.from === 'resume') return lostEntry(run.entry, 'container-removed', session);
        return await runOutside(run, payload, session, wider);
      } catch (error) {
        // Nothing runs any more (OUTSIDE-3). The session's own shell is as it was.
        return error instanceof OutputForgotten
          ? lostEntry(run.entry, 'begun-before', session)
          : failedEntry(run.entry, ensureShellfleetError(error), session);
      }
    },
  };
}

async function runOutside(
  run: EntryRun,
  payload: CommandPayload,
  session: SessionContext,
  { spec, allowances }: { spec: ResolvedSessionSpec; allowances: Beside['allowances'] },
): Promise<EntryResult> {
  const { shell } = session;
  const { session: id } = session.owner.keys;
  refuseUnsafe(payload, id);
  const { sandboxId } = shell;
  if (sandboxId === undefined) throw new Error('the session has no sandbox');
  const cwd = payload.cwd ?? (await shell.directory());
  if (cwd === undefined) throw noDirectory(id);
  const outside = {
    ...session,
    spec: { ...spec, startupCommands: [], shutdownCommands: [] },
    egress: createSessionEgress(spec, session.settings.file.allow, {
      logger: session.logger,
      onRefused: session.onEgressRefused,
    }),
  };
  const wide = openWide({ sandboxId, allowances }, outside);
  const discard = () => void wide.discard();
  session.signal.addEventListener('abort', discard, { once: true });
  try {
    await wide.makeReady(session.signal);
    const ended = await runCommand(run, { ...payload, cwd }, { ...outside, shell: wide });
    return { ...ended, result: { ...explainCwd(ended.result, cwd, id), shell: describeShell(shell) } };
  } finally {
    session.signal.removeEventListener('abort', discard);
    await wide.abandon();
  }
}

/** The directory may well be there in the session. */
function explainCwd(result: WireResult, cwd: string, session: string): WireResult {
  if (result.outcome !== 'error' || result.error.code !== 'COMMAND_INVALID') return result;
  const issues = [{ path: 'cwd', message: 'no such directory outside the sandbox' }];
  const error = new ShellfleetError(
    'COMMAND_INVALID',
    `The directory ${cwd} does not exist outside the sandbox of session ${session}, or its user may not enter it, so nothing was run. Outside there are the files of its workspace; give a cwd there.`,
    { issues },
  );
  return { ...result, error: error.toJSON() };
}

/** Refuses a command whose variables would choose its programs (OUTSIDE-2). */
function refuseUnsafe({ env = {} }: CommandPayload, session: string): void {
  const names = Object.keys(env).filter(isUnsafe);
  if (names.length === 0) return;
  const message = `must not set ${names.join(', ')} outside the sandbox`;
  throw new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The command was not run outside the sandbox of session ${session}: its own variables ${names.join(', ')} would choose its programs, its libraries or what its shell does. Leave them out.`,
    { issues: [{ path: 'env', message }] },
  );
}

/** OUTSIDE-2 */
function refuseVariables(env: Record<string, string>): string | undefined {
  const names = Object.keys(env).filter(isUnsafe);
  if (names.length === 0) return undefined;
  return `its spec sets ${names.join(', ')}, which would choose programs, libraries or what the shell does there`;
}

function noDirectory(session: string): ShellfleetError {
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The command was not run outside the sandbox of session ${session}: the directory of its shell is not there any more, or its keeper did not answer. Give a cwd.`,
  );
}

function openWide(beside: Beside, session: SessionContext): SessionShell {
  const { owner, sandboxes } = session;
  const { namespace, tenant } = owner.keys;
  return new SessionShell(
    {
      ...session,
      ref: { namespace, tenant, session: owner.keys.session },
      fence: owner.fence,
      sandboxes: {
        create: (ref, of, options) => sandboxes.create(ref, of, { ...options, beside }),
        pull: (image, signal) => sandboxes.pull(image, signal),
      },
      // Its processes end with the command, and nobody reads what they print after it.
      onLate() {},
      onAbandoned() {},
      onGone() {},
      onConnected: async () => {},
    },
    { epoch: 0, reportedEpoch: 0, lossReason: 'it has not started' },
  );
}
