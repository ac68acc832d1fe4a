import { PROTOCOL_VERSION } from './version.ts';

/** Every Redis key, queue and channel. `<ns>` is a fleet's keyspace. A session's keys share one Cluster slot. */

/** Random identity of a fleet. It is short because names of containers, directories and sockets contain it. */
export const FLEET_ID_PATTERN = /^[0-9a-f]{12}$/;

/** Returns the prefix of a fleet's keys, channels and sealed places. All databases of a Redis share their channels. */
export const toKeyspace = (namespace: string, fleetId: string) => `${namespace}:${fleetId}`;

/** Splits a keyspace. `fleetId` is empty if the text is a namespace alone. */
export function parseKeyspace(keyspace: string): { namespace: string; fleetId: string } {
  const colon = keyspace.indexOf(':');
  if (colon < 0) return { namespace: keyspace, fleetId: '' };
  const end = keyspace.indexOf(':', colon + 1);
  return { namespace: keyspace.slice(0, colon), fleetId: keyspace.slice(colon + 1, end < 0 ? undefined : end) };
}

/** Matches each fleet id. It has the length of an id, so no pattern matches a name at another position of a key. */
export const ANY_FLEET = '?'.repeat(12);

/** String with the fleet's identity and version. The only key without a keyspace. */
export const fleetIdentityKey = (namespace: string) => `${namespace}:{x0}:fleet`;

/** The identity of a fleet, and the version of the protocol of its keys. */
export interface FleetIdentity {
  fleetId: string;
  protocol: number;
}

/** Returns the value of `fleetIdentityKey`: `<fleet id> <protocol>`. */
export const toFleetIdentity = (fleetId: string, version: number = PROTOCOL_VERSION) => `${fleetId} ${version}`;

/** Parses the value of `fleetIdentityKey`. Versions up to 4 recorded no protocol. Returns undefined for other text. */
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
  /** List of the ids of waiting entries, in the order in which they were accepted. */
  queue: string;
  /** Hash with phase, generation, owner, running entry, epoch */
  state: string;
  /** Stream of SessionEvents and output. */
  stream: string;
  /** pub/sub: id of the newest event */
  feed: string;
  /** Name of the session in other keys and channels: `<tenant>:<session>` */
  member: string;
  /** Prefix of the tenant's `wakeUpsChannel` of each host, to which a script appends the session's host. */
  wakeUpsPrefix: string;
  /**
   * Prefix of every host's `hostKeys().alive`, to which a script appends `<host>:alive`. These keys are on another
   * Cluster slot.
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
    wakeUpsPrefix: wakeUpsPrefix(namespace, tenant),
    hostsPrefix: hostsPrefix(namespace),
  };
}

/**
 * Returns the pattern of the feeds of a tenant's sessions, or of all tenants. It names no fleet, because Redis lets a
 * user subscribe to a pattern only if the user's access list has the same text.
 */
export const feedPattern = (keyspace: string, tenant = '*') =>
  sessionKeys(toKeyspace(parseKeyspace(keyspace).namespace, ANY_FLEET), tenant, '*').feed;

const wakeUpsPrefix = (namespace: string, tenant: string) => `${namespace}:wakeups:${tenant}:`;

/** pub/sub: wake-ups of one host for a tenant's sessions. The host subscribes while it has one of them. */
export const wakeUpsChannel = (namespace: string, tenant: string, host: string) =>
  `${wakeUpsPrefix(namespace, tenant)}${host}`;

/** string, as long as the state: the spec of the generation, sealed */
export const specKey = (keys: SessionKeys) => `${keys.prefix}spec`;
/** hash, kept for the retention: kind, state, owner's fence, stored offsets, outcome, id of the terminal event */
export const recordKey = (keys: SessionKeys, entry: string) => `${keys.prefix}record:${entry}`;
/** string, until the entry's end: its payload, sealed */
export const payloadKey = (keys: SessionKeys, entry: string) => `${keys.prefix}payload:${entry}`;
/**
 * string, kept for one hour, or for the retention if that is less: a file operation's reply, sealed. A large reply is
 * kept for one minute.
 */
export const replyKey = (keys: SessionKeys, entry: string) => `${keys.prefix}reply:${entry}`;
/** stream, until the entry's end: unread chunks of an open stdin, sealed. An id is the offset of the chunk's end. */
export const inputKey = (keys: SessionKeys, entry: string) => `${keys.prefix}input:${entry}`;
/** string, for the retention: the entry of an idempotency key, `<payload hash> <entry id>` */
export const idempotencyKey = (keys: SessionKeys, keyHash: string) => `${keys.prefix}key:${keyHash}`;

/** string, 6 s, renewed every 2 s: a process that opened the session as its driver is alive */
export const driverKey = (keys: SessionKeys) => `${keys.prefix}driver`;

/** Keys of one terminal of a session. They expire together, 30 s after the last call of its user. */
export const terminalKeys = (keys: SessionKeys, terminal: string) => ({
  /** Hash with the numbers of the last messages in and out, and the raw offset after the output */
  terminal: `${keys.prefix}terminal:${terminal}`,
  /** stream, ids from 1-0: messages of the user, sealed */
  input: `${keys.prefix}terminal:${terminal}:input`,
  /** stream, ids from 1-0: output and end, sealed */
  output: `${keys.prefix}terminal:${terminal}:output`,
  /** pub/sub: number of the newest output message */
  feed: `${keys.feed}:${terminal}`,
});

/**
 * Keys of a tenant's approvals, on one Cluster slot. Scripts write them, and clients add answers to the stream. An
 * asker is `<session> <generation> <entry>`, where the entry is a held head, a file operation or a tool call.
 */
export function approvalKeys(namespace: string, tenant: string) {
  const prefix = `${namespace}:{${tenant}:}:`;
  return {
    namespace,
    tenant,
    prefix,
    /** hash of the pending questions: keyed hash of what is asked → `<id> <question, sealed>` */
    questions: `${prefix}questions`,
    /** sorted set: asker → when its question expires (ms, by the clock of Redis) */
    pending: `${prefix}pending`,
    /** Hash of the askers: asker → `<id of its question> <binding>`. */
    asked: `${prefix}asked`,
    /** stream, field `d`: answers, sealed, until a worker has applied them */
    answers: `${prefix}answers`,
    /**
     * sorted set of the decisions to deliver to their sessions: `<approve, deny or expire> <id> <asker>` → when decided
     * (ms)
     */
    decided: `${prefix}decided`,
    /** sorted set: id of a grant → when it expires (ms, by the clock of Redis); infinity for the scope `prefix` */
    grants: `${prefix}grants`,
    /** sorted set: id of a pending question to announce to a webhook → when (ms, by the clock of Redis) */
    unannounced: `${prefix}unannounced`,
    /** Hash of the questions to announce: id → how often the question was sent to the webhook. */
    announcements: `${prefix}announcements`,
    /** pub/sub: id of a question that has changed */
    feed: `${prefix}feed`,
  };
}
export type ApprovalKeys = ReturnType<typeof approvalKeys>;

/** sorted set: asker of one question → when it asked (ms) */
export const askersKey = (keys: ApprovalKeys, question: string) => `${keys.prefix}askers:${question}`;
/** list, kept for the retention: files changed outside commands since the question was asked, each path sealed */
export const approvalWrittenKey = (keys: ApprovalKeys, question: string) => `${keys.prefix}written:${question}`;
/** string, a sealed grant: kept until it is revoked; unless its scope is `prefix`, at most for the retention */
export const approvalGrantKey = (keys: ApprovalKeys, question: string) => `${keys.prefix}grant:${question}`;
/** string, kept for the retention: how a question ended, JSON */
export const approvalEndKey = (keys: ApprovalKeys, question: string) => `${keys.prefix}ended:${question}`;
/**
 * string, kept for the retention: `<question id> <binding>`, the answer that holds for this asker. An answer of scope
 * `session` holds for every asker of the same question: it is `<question id> session`, and its key has `<session>
 * <generation> <hash of what is asked>` in place of the asker.
 */
export const answeredKey = (keys: ApprovalKeys, asker: string) => `${keys.prefix}answered:${asker}`;
/** set, kept for the retention: ids of a session's approvals of scope `session` that cover a directory */
export const coveringKey = (keys: ApprovalKeys, ofGeneration: string) => `${keys.prefix}covering:${ofGeneration}`;
/** string, kept for 15 s and renewed by the caller of a file operation or tool call while it waits for the answer */
export const wantedKey = (keys: ApprovalKeys, asker: string) => `${keys.prefix}wanted:${asker}`;
/**
 * string, kept for an hour: `<denials in a row> <time (ms) until which the session's questions are denied without a
 * person>`
 */
export const denialsKey = (keys: ApprovalKeys, session: string) => `${keys.prefix}denials:${session}`;
/**
 * set, kept for 10 s: hosts that have confirmed the revocation `answer`, so that they start nothing more on its grant
 */
export const confirmedKey = (keys: ApprovalKeys, answer: string) => `${keys.prefix}confirmed:${answer}`;

/**
 * Keys of a detached batch, on one Cluster slot. Only scripts write them. The slash distinguishes their hash tag from
 * that of a session.
 */
export function batchKeys(namespace: string, tenant: string, name: string) {
  const prefix = `${namespace}:{${tenant}:batch/${name}}:`;
  return {
    namespace,
    tenant,
    name,
    /** Hash with the state of the batch, its lease, its progress, and its options, sealed. */
    state: `${prefix}state`,
    /** Hash of the tasks: number of a piece → piece of lines of JSON, sealed. */
    tasks: `${prefix}tasks`,
    /** hash, until the end of the batch: `<blob>.<number>` → piece of a packed file or directory, sealed */
    files: `${prefix}files`,
    /** stream, ids from 1-0, fields `l` (lines that end in it) and `d`: pieces of the result lines, sealed */
    results: `${prefix}results`,
    /** Hash of the outputs: digest of run and path → packed file or directory, sealed. */
    outputs: `${prefix}outputs`,
  };
}
export type BatchKeys = ReturnType<typeof batchKeys>;

/** sorted set: name of a detached batch of the tenant → when it expires (ms, by the clock of Redis), or infinity */
export const batchesKey = (namespace: string, tenant: string) => `${namespace}:{${tenant}:}:batches`;

/** String with the quotas of a tenant that has any, TenantQuotas as JSON. */
export const quotasKey = (namespace: string, tenant: string) => `${tenantPrefix(namespace, tenant)}quotas`;
/** string, 10 s: bytes that a tenant with a quota of disk has on all hosts, as upkeep has summed them last */
export const diskUseKey = (namespace: string, tenant: string) => `${tenantPrefix(namespace, tenant)}disk`;
/**
 * Hash of a tenant with a quota of waiting commands: session → number of its waiting entries; `*` → their sum. The
 * mailbox scripts write it. It is on another Cluster slot than they are, so a Cluster has none.
 */
export const waitingKey = (namespace: string, tenant: string) => `${namespace}:{${tenant}:}:waiting`;

/**
 * Keys of a tenant beside its sessions, on the Cluster slot of the fleet's keys. Clients of the tenant may use them,
 * and clients of other tenants may not.
 */
export function tenantKeys(namespace: string, tenant: string) {
  const prefix = tenantPrefix(namespace, tenant);
  return {
    /**
     * sorted set: id of a session → time of upkeep's next look at it (ms, by the clock of Redis). A negative time: a
     * producer has noted the session, so upkeep looks at it now.
     */
    index: `${prefix}index`,
    /** sorted set: id of a closed session, perhaps open again → when its state expires (ms, by the clock of Redis) */
    closed: `${prefix}closed`,
    /** Hash of the containers kept for a post-mortem: `<session> <sandbox>` → KeptSandbox, JSON. */
    kept: `${prefix}kept`,
  };
}
export type TenantKeys = ReturnType<typeof tenantKeys>;

const tenantPrefix = (namespace: string, tenant: string) => `${namespace}:{x0}:tenant:${tenant}:`;

/** Stream of a tenant's calls to a host. It expires an hour after the last call. */
export const callsKey = (namespace: string, tenant: string, host: string) =>
  `${tenantPrefix(namespace, tenant)}calls:${host}`;

/** Keys of a fleet. The keys of sessions and hosts share one Cluster slot (`{x0}`), the keys of tools another. */
export interface FleetKeys {
  namespace: string;
  /** prefix of the BullMQ queues of sessions, one for each placement class and tenant */
  sessionQueues: string;
  /**
   * list of what producers note for the hosts: a tenant with a session in its index, or the name of a queue of sessions
   * that may hold jobs. A producer can only add to it. Hosts move the items to `tenants`, `queues` and `waitingQueues`.
   */
  noted: string;
  /** Set of the tenants that may have sessions in their index. */
  tenants: string;
  /**
   * sorted set: name of a queue of sessions (`sessionsQueue`) that may hold jobs → when a host last took a job from it
   * (ms, by the clock of Redis), or 0
   */
  queues: string;
  /** sorted set: name of a queue of sessions that may have waiting jobs → 0 */
  waitingQueues: string;
  /**
   * list of `<tenant> <name>` of batches that producers have detached, to which a producer can only add. Hosts move the
   * items to `batches`.
   */
  batchesNoted: string;
  /** sorted set: `<tenant> <name>` of a detached batch → when a host looks at it next (ms, by the clock of Redis) */
  batches: string;
  /** string, expires: guard of the search for jobs whose lock ran out */
  requeued: string;
  /**
   * string with JSON, 5 s, written each second: what each waiting tenant holds and waits for, in the order in which
   * equal ones get slots. The names of the tenants are hashed.
   */
  demand: string;
  /**
   * sorted set: tenant → infinity if it has asked since upkeep's last look, else the time of the last look that found
   * questions of the tenant (ms)
   */
  asking: string;
  /** Hash of the owners: session member → `<fence> <host>`. */
  owners: string;
  /** Counter with the newest fence. */
  fence: string;
  /** Hash with the configuration of the fleet, an AppliedConfiguration. */
  configuration: string;
  /** string with JSON, 10 s: tenant → number of its waiting entries, as upkeep has counted them last */
  waiting: string;
  /** String with the retention of the fleet (ms). */
  retention: string;
  /** sorted set: host id → time of its last heartbeat (ms) */
  hosts: string;
  /** string, 5 s: Redis lost data of the fleet, and hosts declare what they serve */
  restoring: string;
  /** hash, written every minute and never removed: host id → id of the state directory with its audit */
  audits: string;
  /** stream of the records of audits that hosts keep in Redis. Only hosts write it. */
  auditRecords: string;
  /** hash, written with the records: chain `<host> <boot> <tenant>` → its head, JSON */
  auditHeads: string;
  /** hash of what hosts have removed from the stream: marks by chain, and two fields of the whole stream */
  auditRemoved: string;
  /** string, expires: lock of the host that does the fleet's upkeep */
  upkeepLock: string;
  /** string, expires: lock of the host that looks for hosts whose heartbeat stopped */
  watchLock: string;
  /** string, expires: lock of the host that does the upkeep of approvals */
  askingLock: string;
  /** string, expires: lock of the host that announces questions to a webhook */
  announcingLock: string;
  /** pub/sub: wake-ups of all hosts, for the sessions queues */
  sessionsWakeUps: string;
  /** prefix of the BullMQ queues of tools, one for each tool and tenant, on a separate Cluster slot */
  tools: string;
  /** list of the names of queues of tools that may hold jobs, to which a producer can only add */
  toolsNoted: string;
  /**
   * sorted set: name of a queue of tools (`toolQueue`) that may hold jobs → when a host last took a job from it (ms, by
   * the clock of Redis), or 0
   */
  toolQueues: string;
  /** string, expires: guard of the search for jobs of tools whose lock ran out */
  toolsRequeued: string;
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
    noted: `${shared}:noted`,
    tenants: `${shared}:tenants`,
    queues: `${shared}:queues`,
    waitingQueues: `${shared}:waiting-queues`,
    batchesNoted: `${shared}:batches-noted`,
    batches: `${shared}:batches`,
    requeued: `${shared}:requeued`,
    demand: `${shared}:demand`,
    asking: `${shared}:asking`,
    owners: `${shared}:owners`,
    fence: `${shared}:fence`,
    configuration: `${shared}:configuration`,
    waiting: `${shared}:waiting`,
    retention: `${shared}:retention`,
    hosts: `${shared}:hosts`,
    restoring: `${shared}:restoring`,
    audits: `${shared}:audits`,
    auditRecords: `${shared}:audit:records`,
    auditHeads: `${shared}:audit:heads`,
    auditRemoved: `${shared}:audit:removed`,
    upkeepLock: `${shared}:upkeep-lock`,
    watchLock: `${shared}:watch-lock`,
    askingLock: `${shared}:asking-lock`,
    announcingLock: `${shared}:announcing-lock`,
    sessionsWakeUps: `${shared}:wakeups`,
    tools,
    toolsNoted: `${tools}:noted`,
    toolQueues: `${tools}:queues`,
    toolsRequeued: `${tools}:requeued`,
    knownTools: `${tools}:known`,
    toolsWakeUps: `${tools}:wakeups`,
  };
}

/**
 * Keys of who may use the fleet over HTTP and MCP. Their prefix is not that of the fleet's other keys, so that no
 * pattern of an access list for a worker or a client matches them.
 */
export function accessKeys(keyspace: string) {
  const { namespace, fleetId } = parseKeyspace(keyspace);
  const prefix = `${namespace}/access:${fleetId}`;
  return {
    /** Hash of the API keys: id → ApiKeyRecord, sealed. A field is removed when its key is revoked. */
    apiKeys: `${prefix}:api-keys`,
    /** Hash of the last uses: id of an API key → time (ms), at most a minute late. */
    apiKeyUses: `${prefix}:api-key-uses`,
  };
}

/** Returns the BullMQ queue of a tenant's sessions of a placement class. A host fetches only classes that it offers. */
export const sessionsQueue = (placementClass: string, tenant: string) => `sessions-${placementClass}@${tenant}`;
/** Set of the names in `fleetKeys().queues` that are of one tenant. Only scripts of hosts read and write it. */
export const tenantQueuesKey = (fleet: FleetKeys, tenant: string) => `${fleet.queues}:${tenant}`;
/** Returns the placement class and the tenant in the name of a queue. Returns undefined for other names. */
export function parseSessionsQueue(name: string): { placementClass: string; tenant: string } | undefined {
  const [, placementClass, tenant] = /^sessions-([^@]+)@(.+)$/.exec(name) ?? [];
  return placementClass === undefined || tenant === undefined ? undefined : { placementClass, tenant };
}
/** Returns the id of a session's job. BullMQ refuses `:` and whole numbers in job ids. */
export const sessionJobId = (tenant: string, session: string) => `s~${tenant}~${session}`;
/** Parses a session's job id. Returns undefined for other ids. */
export function parseSessionJobId(jobId: string): { tenant: string; session: string } | undefined {
  const match = /^s~([A-Za-z0-9._-]{1,128})~([A-Za-z0-9._-]{1,128})$/.exec(jobId);
  return match === null ? undefined : { tenant: match[1] as string, session: match[2] as string };
}

/** Returns the BullMQ queue of a tenant's calls of a tool. Only hosts that offer the tool fetch from it. */
export const toolQueue = (name: string, tenant: string) => `tool-${name}@${tenant}`;
/** Returns the tenant in the name of a queue. */
export const tenantOfToolQueue = (name: string) => name.slice(name.lastIndexOf('@') + 1);
/** Returns the job id of a call, with a prefix because BullMQ treats a whole number as its own id. */
export const toolJobId = (call: string) => `call-${call}`;

const toolsPrefix = (fleet: FleetKeys, tenant: string) => `${fleet.tools}:tenant:${tenant}:`;
/**
 * String with the id of the process that began the call, or ended it before its start. While the key exists, the call
 * cannot begin again.
 */
export const toolCallKey = (fleet: FleetKeys, tenant: string, call: string) =>
  `${toolsPrefix(fleet, tenant)}call:${call}`;
/** String with the sealed result of the call. The first result that is written counts. */
export const toolResultKey = (fleet: FleetKeys, tenant: string, call: string) =>
  `${toolsPrefix(fleet, tenant)}result:${call}`;
/** stream and channel: starts and ends of a tenant's calls */
export const toolEventsKey = (fleet: FleetKeys, tenant: string) => `${toolsPrefix(fleet, tenant)}events`;

/** Keys of one host, on the Cluster slot of the fleet's keys: one transaction writes them with the list of hosts. */
export const hostKeys = (namespace: string, host: string) => ({
  /** string with JSON, 4 s (`ALIVE_MS`): heartbeat of the worker, whose age follows from the remaining time */
  alive: `${hostPrefix(namespace, host)}:alive`,
  /** string, 5 s, renewed: boot id of the one process that may act as this host */
  boot: `${hostPrefix(namespace, host)}:boot`,
  /**
   * string, kept until the drain is undone or the host is removed: an operator asked the host to take no new session
   */
  drain: `${hostPrefix(namespace, host)}:drain`,
  /** string, kept until it is withdrawn or the host is removed: an operator lets the host keep only what it has */
  cordon: `${hostPrefix(namespace, host)}:cordon`,
  /** string, for the retention: the host left without sessions or was removed, and is listed only while alive */
  left: `${hostPrefix(namespace, host)}:left`,
  /** Stream of the calls of operators. Those of a tenant are in `callsKey`. */
  calls: `${hostPrefix(namespace, host)}:calls`,
  /** List of the tenants that have called the host since it last read calls. A client can only add to it. */
  callers: `${hostPrefix(namespace, host)}:callers`,
  /** Set of the tenants of whose sessions the host has listed kept containers. */
  kept: `${hostPrefix(namespace, host)}:kept`,
  /** string with JSON, 5 s: tools that the host offers */
  tools: `${hostPrefix(namespace, host)}:tools`,
  /** hash, written every minute and never removed: tenant → head of its audit chain on this host, JSON */
  audit: `${hostPrefix(namespace, host)}:audit`,
  /** hash, written every 5 s until the host is forgotten: tenant → what it uses on this host, TenantUse as JSON */
  uses: `${hostPrefix(namespace, host)}:uses`,
  /** pub/sub: wake-ups of this host that name no session */
  wakeUps: `${hostPrefix(namespace, host)}:wakeups`,
});

const hostsPrefix = (namespace: string) => `${namespace}:{x0}:host:`;
const hostPrefix = (namespace: string, host: string) => `${hostsPrefix(namespace)}${host}`;

/** pub/sub: hints for one producer that entries of a tenant ended, and replies to its requests */
export const inboxChannel = (namespace: string, tenant: string, producer: string) =>
  `${namespace}:inbox:${tenant}:${producer}`;
