import { PROTOCOL_VERSION } from './version.ts';

/**
 * Every Redis key, queue and channel of Shellfleet. `<ns>` is the keyspace of a fleet, which these functions take as
 * `namespace`; a session's keys share one hash tag, so one Cluster slot.
 */

/** The random identity of a fleet. Names of containers, folders and sockets are made from it, so it is short. */
export const FLEET_ID_PATTERN = /^[0-9a-f]{12}$/;

/**
 * The beginning of every key and channel of a fleet, and the place of everything
 * that it seals: its namespace, and the identity that tells it from other fleets of
 * this name. Channels need it most: Redis has one set of them for all its databases.
 */
export const toKeyspace = (namespace: string, fleetId: string) => `${namespace}:${fleetId}`;

/** The parts of a keyspace. `fleetId` is empty where the text is a namespace alone. */
export function parseKeyspace(keyspace: string): { namespace: string; fleetId: string } {
  const colon = keyspace.indexOf(':');
  if (colon < 0) return { namespace: keyspace, fleetId: '' };
  const end = keyspace.indexOf(':', colon + 1);
  return { namespace: keyspace.slice(0, colon), fleetId: keyspace.slice(colon + 1, end < 0 ? undefined : end) };
}

/** String with the identity of the fleet of a namespace, and its version. The only key without a keyspace. */
export const fleetIdentityKey = (namespace: string) => `${namespace}:{x0}:fleet`;

/** The identity of a fleet, and the version of the protocol of its keys. */
export interface FleetIdentity {
  fleetId: string;
  protocol: number;
}

/** Returns the value of `fleetIdentityKey` for a fleet whose keys are of this version: `<fleet id> <protocol>`. */
export const toFleetIdentity = (fleetId: string) => `${fleetId} ${PROTOCOL_VERSION}`;

/** Reads a value of `fleetIdentityKey`. Versions up to 4 recorded none. Returns undefined when it is no identity. */
export function parseFleetIdentity(text: string): FleetIdentity | undefined {
  const [fleetId = '', protocol = '4', ...others] = text.split(' ');
  if (!FLEET_ID_PATTERN.test(fleetId) || !/^[1-9]\d{0,5}$/.test(protocol) || others.length > 0) return undefined;
  return { fleetId, protocol: Number(protocol) };
}

/** Keys of one session. Only the mailbox scripts write them. */
export interface SessionKeys {
  namespace: string;
  tenant: string;
  session: string;
  /** Prefix of all keys of the session: `<ns>:{<tenant>:<session>}:` */
  prefix: string;
  /** List of the ids of the waiting entries, in order of acceptance. */
  queue: string;
  /** Hash with phase, generation, sealed spec, owner, running entry and epoch. */
  state: string;
  /** stream of SessionEvents and output */
  stream: string;
  /** pub/sub: the id of the newest stream entry */
  feed: string;
  /** name of the session in other keys and channels: `<tenant>:<session>` */
  member: string;
  /** Prefix of every host's `hostKeys().wakeUps`. A script appends the session's host, which it reads when it runs. */
  wakeUpsPrefix: string;
  /**
   * Prefix of every host's `hostKeys().alive`, to which a script
   * appends `<host>:alive`. On another Cluster slot than the session.
   */
  hostsPrefix: string;
}

export function sessionKeys(namespace: string, tenant: string, session: string): SessionKeys {
  const prefix = `${namespace}:{${tenant}:${session}}:`;
  const member = `${tenant}:${session}`;
  return {
    namespace,
    tenant,
    session,
    prefix,
    queue: `${prefix}queue`,
    state: `${prefix}state`,
    stream: `${prefix}stream`,
    feed: `${namespace}:feed:${member}`,
    member,
    wakeUpsPrefix: wakeUpsPrefix(namespace),
    hostsPrefix: hostsPrefix(namespace),
  };
}

const wakeUpsPrefix = (namespace: string) => `${namespace}:wakeups:`;

/**
 * hash, kept for the retention after its end: kind, state, owner's fence, stored offsets, outcome, id of the
 * terminal event
 */
export const recordKey = (keys: SessionKeys, entry: string) => `${keys.prefix}record:${entry}`;
/** string, until the entry's end: its payload, sealed */
export const payloadKey = (keys: SessionKeys, entry: string) => `${keys.prefix}payload:${entry}`;
/**
 * string, one hour or the retention if that is less: the answer of a
 * file operation, sealed. A large answer to a question: one minute
 */
export const answerKey = (keys: SessionKeys, entry: string) => `${keys.prefix}answer:${entry}`;
/**
 * stream, until the entry's end: unread chunks of an open stdin, sealed; each id is the offset at which the chunk ends
 */
export const inputKey = (keys: SessionKeys, entry: string) => `${keys.prefix}input:${entry}`;
/** string, for the retention: `<payload hash> <entry id>` */
export const idempotencyKey = (keys: SessionKeys, keyHash: string) => `${keys.prefix}key:${keyHash}`;

/** string, 6 s, renewed every 2 s: a process that opened the session as its driver is alive */
export const driverKey = (keys: SessionKeys) => `${keys.prefix}driver`;

/** Keys of one terminal of a session. They expire together, 30 s after the last call of its user. */
export const terminalKeys = (keys: SessionKeys, terminal: string) => ({
  /** Hash with the numbers of the last messages in and out, and the raw offset after the output. */
  terminal: `${keys.prefix}terminal:${terminal}`,
  /** stream, ids from 1-0: messages of its user, sealed */
  input: `${keys.prefix}terminal:${terminal}:input`,
  /** stream, ids from 1-0: its output and its end, sealed */
  output: `${keys.prefix}terminal:${terminal}:output`,
  /** pub/sub: the number of its newest output message */
  feed: `${keys.feed}:${terminal}`,
});

/**
 * Keys of the approvals of one tenant, on one Cluster slot. No session id is empty, so they are no session's. Scripts
 * write them, but for the stream of answers: whoever answers adds to that one, and writes nothing else. An asker is
 * `<session> <generation> <entry>`: a held entry, or a file operation or tool call beside the mailboxes.
 */
export function approvalKeys(namespace: string, tenant: string) {
  const prefix = `${namespace}:{${tenant}:}:`;
  return {
    namespace,
    tenant,
    /** Prefix of all of them. */
    prefix,
    /** Hash of the pending questions: keyed hash of what is asked → `<id> <question, sealed>`. */
    questions: `${prefix}questions`,
    /** sorted set: asker → when its question expires (ms, by the clock of Redis) */
    pending: `${prefix}pending`,
    /** Hash of the askers: asker → `<id of its question> <binding>`. */
    asked: `${prefix}asked`,
    /** stream, field `d`: answers, sealed, until a worker has applied them */
    answers: `${prefix}answers`,
    /**
     * sorted set: `<approve, deny or expire> <id> <asker>` whose session has not received it → when it was decided (ms)
     */
    decided: `${prefix}decided`,
    /**
     * sorted set: id of a grant → until when it is kept (ms, by the clock of Redis); infinity for one of scope `prefix`
     */
    grants: `${prefix}grants`,
    /**
     * sorted set: id of a pending question that no webhook has taken → when it is sent next (ms, by the clock of Redis)
     */
    unannounced: `${prefix}unannounced`,
    /** Hash of the same questions: id → how often it was sent to the webhook. */
    announcements: `${prefix}announcements`,
    /** pub/sub: an id of a question that has changed */
    feed: `${prefix}feed`,
  };
}
export type ApprovalKeys = ReturnType<typeof approvalKeys>;

/** sorted set: asker → when it asked (ms), of one question */
export const askersKey = (keys: ApprovalKeys, question: string) => `${keys.prefix}askers:${question}`;
/** list, kept for the retention: files that were changed beside the commands since it was asked, each path sealed */
export const approvalWrittenKey = (keys: ApprovalKeys, question: string) => `${keys.prefix}written:${question}`;
/** String with a sealed grant, until it is revoked; kept for the retention if its scope is not `prefix`. */
export const approvalGrantKey = (keys: ApprovalKeys, question: string) => `${keys.prefix}grant:${question}`;
/** string, kept for the retention: how a question ended, JSON */
export const approvalEndKey = (keys: ApprovalKeys, question: string) => `${keys.prefix}ended:${question}`;
/**
 * string, kept for the retention: `<id of the question> <binding>`, the answer that holds for an asker; or `<id>
 * session` for whatever asks the same in a session, under `<session> <generation> <hash of what is asked>`
 */
export const answeredKey = (keys: ApprovalKeys, asker: string) => `${keys.prefix}answered:${asker}`;
/** set, kept for the retention: ids of the approvals of scope `session` that a session has for folders */
export const coveringKey = (keys: ApprovalKeys, ofGeneration: string) => `${keys.prefix}covering:${ofGeneration}`;
/** string, kept for 15 s and renewed by the caller of a file operation or tool call while it waits for the answer */
export const wantedKey = (keys: ApprovalKeys, asker: string) => `${keys.prefix}wanted:${asker}`;
/** string, kept for an hour: `<denials in a row> <until when (ms) the session is asked nothing>` */
export const denialsKey = (keys: ApprovalKeys, session: string) => `${keys.prefix}denials:${session}`;
/** set, kept for 10 s: hosts on which no start is under way on a grant that an answer has revoked */
export const confirmedKey = (keys: ApprovalKeys, answer: string) => `${keys.prefix}confirmed:${answer}`;

/**
 * Keys of a fleet that belong to no session. Those of sessions and
 * hosts share one Cluster slot (`{x0}`), those of tools another.
 */
export interface FleetKeys {
  namespace: string;
  /** prefix of the BullMQ queues of sessions, one for each placement class */
  sessionQueues: string;
  /**
   * sorted set: session member → when upkeep looks at it: the time of its next look (ms, by the clock of Redis), or a
   * negative number, the negated time at which a producer noted it last: at once
   */
  index: string;
  /**
   * sorted set: session member → when the state of the closed session expires
   * (ms, by the clock of Redis). One that was opened anew may be in it
   */
  closed: string;
  /** Set of the placement classes that any host has offered, or any session has had. */
  classes: string;
  /**
   * sorted set: tenant → infinity when it has asked since upkeep looked at it last,
   * else when upkeep found that it asks something (ms, by the clock of Redis)
   */
  asking: string;
  /** Hash of the owners: session member → `<fence> <host>`. */
  owners: string;
  /** Counter with the newest fence. */
  fence: string;
  /** String with the time for which the fleet keeps what has ended (ms). */
  retention: string;
  /** sorted set: host id → time of its last heartbeat (ms) */
  hosts: string;
  /** string, 5 s: Redis lost data of the fleet, and its hosts declare what they serve */
  restoring: string;
  /** Hash, written every minute and never removed: host id → id of the state folder in which its audit is. */
  audits: string;
  /** string, expires: one host does the fleet's upkeep */
  upkeepLock: string;
  /** string, expires: one host looks for hosts whose heartbeat stopped */
  watchLock: string;
  /** string, expires: one host does the upkeep of approvals */
  askingLock: string;
  /** string, expires: one host with a webhook announces questions */
  announcingLock: string;
  /** pub/sub: wake-ups of all hosts, for the sessions queues */
  sessionsWakeUps: string;
  /** prefix of the BullMQ queues of tools, one for each tool. They are on a Cluster slot of their own */
  tools: string;
  /** Hash of the containers kept for a post-mortem: `<tenant>:<session> <sandbox>` → KeptSandbox, JSON. */
  kept: string;
  /** sorted set: name of a tool → time at which a host last offered it (ms) */
  knownTools: string;
  /** pub/sub: wake-ups of all hosts, for the queues of tools */
  toolsWakeUps: string;
}

export function fleetKeys(namespace: string): FleetKeys {
  const shared = `${namespace}:{x0}`;
  const tools = `${namespace}:{tools}`;
  return {
    namespace,
    sessionQueues: shared,
    index: `${shared}:index`,
    closed: `${shared}:closed`,
    classes: `${shared}:classes`,
    asking: `${shared}:asking`,
    owners: `${shared}:owners`,
    fence: `${shared}:fence`,
    retention: `${shared}:retention`,
    kept: `${shared}:kept`,
    hosts: `${shared}:hosts`,
    restoring: `${shared}:restoring`,
    audits: `${shared}:audits`,
    upkeepLock: `${shared}:upkeep-lock`,
    watchLock: `${shared}:watch-lock`,
    askingLock: `${shared}:asking-lock`,
    announcingLock: `${shared}:announcing-lock`,
    sessionsWakeUps: `${shared}:wakeups`,
    tools,
    knownTools: `${tools}:known`,
    toolsWakeUps: `${tools}:wakeups`,
  };
}

/** One BullMQ queue for each placement class: a host fetches only from the classes that it offers. */
export const sessionsQueue = (placementClass: string) => `sessions-${placementClass}`;
/** BullMQ refuses `:` and whole numbers in job ids. */
export const sessionJobId = (tenant: string, session: string) => `s~${tenant}~${session}`;
/** Returns undefined when the id is not a session job's. */
export function parseSessionJobId(jobId: string): { tenant: string; session: string } | undefined {
  const match = /^s~([A-Za-z0-9._-]{1,128})~([A-Za-z0-9._-]{1,128})$/.exec(jobId);
  return match === null ? undefined : { tenant: match[1] as string, session: match[2] as string };
}

/** One BullMQ queue for each tool: only hosts that offer the tool fetch from it. */
export const toolQueue = (name: string) => `tool-${name}`;
/** The prefix is needed because BullMQ treats a whole number as an id of its own. */
export const toolJobId = (call: string) => `call-${call}`;
/** String with the process that began the call, or ended it before it began. Once set, the call never begins again. */
export const toolCallKey = (fleet: FleetKeys, call: string) => `${fleet.tools}:call:${call}`;
/** String with the sealed result of the call; the first one written counts. */
export const toolResultKey = (fleet: FleetKeys, call: string) => `${fleet.tools}:result:${call}`;
/** stream and channel: calls of a tenant that started and ended */
export const toolEventsKey = (fleet: FleetKeys, tenant: string) => `${fleet.tools}:events:${tenant}`;

/**
 * Keys of one host. They are on the Cluster slot of the fleet's
 * keys, because one transaction writes them with the list of hosts.
 */
export const hostKeys = (namespace: string, host: string) => ({
  /** string with JSON, 4 s (`ALIVE_MS`): heartbeat of the worker. The time that it has left says when that was. */
  alive: `${hostPrefix(namespace, host)}:alive`,
  /** string, 5 s, renewed: boot id of the one process that may act as this host */
  boot: `${hostPrefix(namespace, host)}:boot`,
  /** string, until it is undone or the host is forgotten: an operator asked the host to take no new session */
  drain: `${hostPrefix(namespace, host)}:drain`,
  /**
   * string, for the retention: the host ended in order with no session,
   * or was removed from the list. It is not listed while it is not alive
   */
  left: `${hostPrefix(namespace, host)}:left`,
  /** Stream of calls to live shells. */
  calls: `${hostPrefix(namespace, host)}:calls`,
  /** string with JSON, 5 s: the tools that it offers */
  tools: `${hostPrefix(namespace, host)}:tools`,
  /** Hash, written every minute and never removed: tenant → head of its audit chain on this host, JSON. */
  audit: `${hostPrefix(namespace, host)}:audit`,
  /** pub/sub: wake-ups of this host */
  wakeUps: `${wakeUpsPrefix(namespace)}${host}`,
});

const hostsPrefix = (namespace: string) => `${namespace}:{x0}:host:`;
const hostPrefix = (namespace: string, host: string) => `${hostsPrefix(namespace)}${host}`;

/** pub/sub: hints for one producer that its entries ended, and answers to its questions */
export const inboxChannel = (namespace: string, producer: string) => `${namespace}:inbox:${producer}`;
