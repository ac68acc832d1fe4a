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
import { describeShell, failedEntry, lostEntry } from '../run/results.ts';
import { runCommand } from '../run/run-command.ts';
import type { SessionContext } from '../run/session-context.ts';
import type { WiderSandbox } from '../run/wider-sandbox.ts';
import type { Beside } from '../sandbox/sandbox.ts';
import { SessionShell } from '../shell/session-shell.ts';
import { isUnsafe } from './unsafe-variables.ts';

// A command that leaves its session's sandbox runs in a fresh shell, in a second sandbox.
// WIDER-1. The second sandbox has the session's workspace and directory, and the variables of the spec with its
//          secrets. Its shell has no variable, function, alias, trap or option of the session's shell, and has run no
//          startup command.
// WIDER-2. Its programs and libraries come from directories that the session cannot write to, and its shell reads no
//          file before the command.
// WIDER-3. The sandbox runs one command. It is removed with all its processes before the Result is stored, however the
//          command ended. If the engine fails to remove it, the next sweep does.
// WIDER-4. No worker takes the second sandbox for the session's own. A worker that starts removes it.

/**
 * Returns how a session's commands leave its sandbox. `settings` is undefined if the operator lets no command leave.
 */
export function createWider(spec: ResolvedSessionSpec, settings: WiderSettings | undefined): WiderSandbox {
  const wider = widenSandbox(spec, settings);
  const refusal = 'refusal' in wider ? wider.refusal : refuseVariables({ ...spec.env, ...spec.secrets });
  if ('refusal' in wider || refusal !== undefined) {
    return {
      refusal,
      sandbox: undefined,
      run: () => Promise.reject(new Error(`nothing may run in a wider sandbox: ${refusal}`)),
    };
  }
  return {
    refusal: undefined,
    sandbox: wider.spec.sandbox,
    async run(run, payload, session) {
      try {
        if (run.from === 'resume') return lostEntry(run.entry, 'container-removed', session);
        return await runInWider(run, payload, session, wider);
      } catch (error) {
        // No process is left (WIDER-3), and the session's own shell is unchanged.
        return error instanceof OutputForgotten
          ? lostEntry(run.entry, 'begun-before', session)
          : failedEntry(run.entry, ensureShellfleetError(error), session);
      }
    },
  };
}

async function runInWider(
  run: EntryRun,
  payload: CommandPayload,
  session: SessionContext,
  { spec, allowances }: { spec: ResolvedSessionSpec; allowances: Beside['allowances'] },
): Promise<EntryResult> {
  const { shell } = session;
  const { session: id } = session.owner.keys;
  refuseUnsafe(payload, id);
  const sandboxId = shell.sandbox?.id;
  if (sandboxId === undefined) throw new Error('the session has no sandbox');
  const cwd = payload.cwd ?? (await shell.directory());
  if (cwd === undefined) throw noDirectory(id);
  const context = {
    ...session,
    spec: { ...spec, startupCommands: [], shutdownCommands: [] },
    egress: createSessionEgress(spec, session.settings.file.allow, {
      ...session,
      onRefused: session.onEgressRefused,
    }),
  };
  const wide = openWide({ sandboxId, allowances }, context);
  const discard = () => void wide.discard();
  session.signal.addEventListener('abort', discard, { once: true });
  try {
    const openedFrom = performance.now();
    await wide.makeReady(session.signal);
    const openingMs = Math.round(performance.now() - openedFrom);
    const ended = await runCommand(run, { ...payload, cwd }, { ...context, shell: wide });
    const result = explainCwd(ended.result, cwd, id);
    const receipt = result.receipt && { ...result.receipt, openingMs };
    return { ...ended, result: { ...result, receipt, shell: describeShell(shell) } };
  } finally {
    session.signal.removeEventListener('abort', discard);
    await wide.abandon();
  }
}

/** Explains that the directory may exist in the session's sandbox only. */
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

/** Refuses a command whose variables would choose its programs (WIDER-2). */
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

/** Returns why variables are refused (WIDER-2). Undefined if none is. */
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
      // The processes end with the command, and nobody reads later output.
      onLate() {},
      onAbandoned() {},
      onGone() {},
      onConnected: async () => {},
    },
    { epoch: 0, reportedEpoch: 0, lossReason: 'it has not started' },
  );
}
