import { readStoredSession } from '@shellfleet/mailbox';
import { hostKeys, ShellfleetError, sessionIdSchema, sessionKeys, tenantIdSchema } from '@shellfleet/protocol';
import { retentionOf, toQueueError } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';
import { refuseUnknownHost } from './known-host.ts';

const PAGE = 1_000;
/** Number of sessions that a refusal names. */
const NAMED = 10;

/**
 * Removes a host that owns no session from the list, and withdraws what operators asked of it. Its last heartbeat
 * stays, because decisions about sessions that it owned need it.
 */
export async function removeHost(context: FleetContext, id: string): Promise<void> {
  const { redis, namespace } = context;
  const { alive, cordon, drain, left } = hostKeys(namespace, id);
  try {
    await refuseUnknownHost(context, id);
    if ((await redis.exists(alive)) === 1) throw isUp(id);
    const owned = await findOwnedSessions(context, id);
    if (owned.length > 0) throw ownsSessions(id, owned);
    await redis.set(left, '1', 'PX', retentionOf(redis, namespace));
    await redis.del(cordon, drain);
  } catch (error) {
    throw error instanceof ShellfleetError ? error : toQueueError(error);
  }
}

interface OwnedSession {
  tenant: string;
  session: string;
}

/** Finds the sessions of all tenants that the host has acquired and not given up. */
async function findOwnedSessions({ redis, namespace, fleet }: FleetContext, id: string): Promise<OwnedSession[]> {
  const owned = new Map<string, OwnedSession>();
  let cursor = '0';
  do {
    const [next, fields] = await redis.hscan(fleet.owners, cursor, 'COUNT', PAGE);
    cursor = next;
    // The hash names the last owner, which may have given the session up since. The state has the present one.
    const members = fields.filter((_field, at) => at % 2 === 0 && fields[at + 1]?.split(' ')[1] === id);
    await Promise.all(
      members.map(async (member) => {
        const session = parseMember(member);
        if (session === undefined) return;
        const state = await readStoredSession(redis, sessionKeys(namespace, session.tenant, session.session));
        if (state?.host === id && state.phase !== 'closed') owned.set(member, session);
      }),
    );
  } while (cursor !== '0');
  return [...owned.values()].sort((a, b) => (`${a.tenant} ${a.session}` < `${b.tenant} ${b.session}` ? -1 : 1));
}

/** Parses `SessionKeys.member`. Returns undefined for other text, because any process may have written to Redis. */
function parseMember(member: string): OwnedSession | undefined {
  const [tenant = '', session = '', ...rest] = member.split(':');
  const isValid = tenantIdSchema.safeParse(tenant).success && sessionIdSchema.safeParse(session).success;
  return rest.length === 0 && isValid ? { tenant, session } : undefined;
}

function isUp(id: string): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `Host ${id} is up. Let it take nothing new with \`shellfleet hosts drain ${id}\`, and stop its worker; then it leaves the list by itself.`,
    { issues: [{ path: 'host', message: 'is up' }] },
  );
}

function ownsSessions(id: string, owned: readonly OwnedSession[]): ShellfleetError {
  const names = owned.slice(0, NAMED).map(({ tenant, session }) => `${session} (tenant ${tenant})`);
  const more = owned.length > NAMED ? `, and ${owned.length - NAMED} more` : '';
  const [sessions, them] = owned.length === 1 ? ['1 session', 'it'] : [`${owned.length} sessions`, 'them'];
  return new ShellfleetError(
    'COMMAND_INVALID',
    `Host ${id} still owns ${sessions}: ${names.join(', ')}${more}. Start its worker again, or close ${them} with \`shellfleet close SESSION --tenant TENANT\`.`,
    { issues: [{ path: 'host', message: `still owns ${sessions}` }] },
  );
}
