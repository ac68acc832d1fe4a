import {
  type HostCall,
  type LogPage,
  type LogRequest,
  type OperatorCall,
  type OperatorRequest,
  type OperatorRequestCall,
  type RequestCall,
  type SessionKeys,
  ShellfleetError,
  sessionKeys,
} from '@shellfleet/protocol';
import { isSignedClose, signedReason } from '@shellfleet/sealing';
import { readCalls } from '../calls/read-calls.ts';
import { replyAboutImages } from '../calls/reply-about-images.ts';
import { replyToRequest } from '../calls/reply-to-request.ts';
import type { EntryRun } from '../run/entry-run.ts';
import type { SessionHost } from '../run/host-services.ts';
import type { ToolHost } from '../tools/tool-host.ts';
import type { HostedSessions } from './hosted-sessions.ts';

export interface HostCallDeps extends SessionHost {
  sessions: HostedSessions;
  tools: ToolHost;
  /** Is called when an operator has drained or cordoned this host, or withdrawn such a request. */
  onOperatorRequest(): void;
}

/** Time for which a reply waits for what is asked for. It is less than that in which a reply is expected. */
const WAIT_MS = 2_000;

/** Reads the calls to this host and carries each out. Never rejects. */
export async function readHostCalls(deps: HostCallDeps): Promise<void> {
  await readCalls(deps, {
    onCall: (call) => carryOut(call, deps),
    onOperatorCall: (call) => carryOutForOperator(call, deps),
  }).catch((err: unknown) => deps.logger.warn({ err }, 'calls.failed'));
}

function carryOut(call: HostCall, deps: HostCallDeps): void {
  switch (call.type) {
    case 'cancel-tool':
      deps.tools.cancel({ tenant: call.tenant, id: call.call }, call.signed ?? '');
      break;
    case 'close':
      deps.sessions.find(call)?.closeGeneration(call.generation, isClosed(call, deps) ? 'now' : 'if-asked');
      break;
    case 'purge':
      if (isClosed(call, deps)) void deps.kept.purge({ namespace: deps.namespace, ...call });
      break;
    case 'cancel':
      if (isCancelled(call, deps)) deps.sessions.find(call)?.cancel(call.generation, call.entry);
      break;
    case 'request':
      reply(call, () => find(call, deps), deps);
      break;
  }
}

function carryOutForOperator(call: OperatorCall, deps: HostCallDeps): void {
  if (call.type === 'request') reply(call, () => findForOperator(call.request, deps), deps);
  else deps.onOperatorRequest();
}

async function findForOperator(request: OperatorRequest, { recentLines, sandboxes }: HostCallDeps): Promise<unknown> {
  if (request.type === 'worker-log') return recentLines.read(request, WAIT_MS);
  return replyAboutImages(request, sandboxes.images);
}

function reply(call: RequestCall | OperatorRequestCall, find: () => Promise<unknown>, deps: HostCallDeps): void {
  void replyToRequest(call, deps, find).catch((err: unknown) => deps.logger.warn({ err }, 'calls.failed'));
}

/** Returns whether to close: where keys are configured, only if a known producer signed the call. */
function isClosed(call: Extract<HostCall, { type: 'close' | 'purge' }>, { namespace, sealer }: HostCallDeps): boolean {
  const { tenant, session, generation, signed = '' } = call;
  return isSignedClose(sealer, sessionKeys(namespace, tenant, session), generation, signed);
}

function isCancelled(call: Extract<HostCall, { type: 'cancel' }>, { namespace, sealer }: HostCallDeps): boolean {
  const { tenant, session, entry, signed = '' } = call;
  const keys = sessionKeys(namespace, tenant, session);
  return signedReason(sealer, keys, entry, { reason: '', signed }) !== undefined;
}

/** Returns the reply to a request. Throws LEASE_LOST when it is about a session that is not here. */
async function find({ tenant, session, request }: RequestCall, deps: HostCallDeps): Promise<unknown> {
  const found = deps.sessions.find({ tenant, session });
  // Logs stay on this host after their session has left it.
  if (request.type === 'log')
    return readLog(sessionKeys(deps.namespace, tenant, session), request, found?.running, deps);
  if (found === undefined) throw new ShellfleetError('LEASE_LOST', `Session ${session} is not on host ${deps.hostId}.`);
  switch (request.type) {
    case 'background':
      return found.background();
    case 'attach':
      return found.besides(request.generation)?.terminals.open(request) ?? { state: 'no-shell' };
    case 'file':
      return found.besides(request.generation)?.files.reply(request) ?? { state: 'no-shell' };
  }
}

/** Returns a page of a command's log. For the attached reader of a running command, waits for the next output. */
async function readLog(
  keys: SessionKeys,
  request: LogRequest,
  running: EntryRun | undefined,
  { overflowLogs }: HostCallDeps,
): Promise<LogPage> {
  const { entry, from, attached } = request;
  const reader = running?.entry.id === entry && attached !== undefined ? running.reader : undefined;
  reader?.seen(from);
  if (attached === 'waits') return { pieces: [], more: true };
  await reader?.untilMore(from, WAIT_MS);
  return overflowLogs.read(keys, request);
}
