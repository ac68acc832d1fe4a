/** Every Redis key, queue and channel of Shellfleet. `<ns>` is the namespace; a session's keys share one hash tag, so one Cluster slot. */

/** Keys of one session. Only the mailbox scripts write them. */
export interface SessionKeys {
  namespace: string;
  tenant: string;
  session: string;
  /** Everything of the session begins with it: `<ns>:{<tenant>:<session>}:` */
  prefix: string;
  /** list of entry ids that wait, in order of acceptance */
  queue: string;
  /** hash: life, generation, sealed spec, owner, running entry, epoch */
  state: string;
  /** stream of SessionEvents and output */
  stream: string;
  /** pub/sub: the id of the newest stream entry */
  feed: string;
  /** what other keys and channels call the session: `<tenant>:<session>` */
  member: string;
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
  };
}

/** hash, kept for the retention after its end: kind, state, sealed payload until it ends, owner's fence, stored offsets, outcome, id of the terminal event */
export const recordKey = (keys: SessionKeys, entry: string) => `${keys.prefix}record:${entry}`;
/** string, one hour: what a file operation handed back, sealed */
export const answerKey = (keys: SessionKeys, entry: string) => `${keys.prefix}answer:${entry}`;
/** stream, until its end: chunks of an open stdin that were not read yet, sealed; each id is the offset at which the chunk ends */
export const inputKey = (keys: SessionKeys, entry: string) => `${keys.prefix}input:${entry}`;
/** string, for the retention: `<payload hash> <entry id>` */
export const idempotencyKey = (keys: SessionKeys, keyHash: string) => `${keys.prefix}key:${keyHash}`;

/** Of one terminal at a session. They expire together, 30 s after its user was last there. */
export const terminalKeys = (keys: SessionKeys, terminal: string) => ({
  /** hash: how many messages were typed and shown, and up to which raw offset */
  terminal: `${keys.prefix}terminal:${terminal}`,
  /** stream, ids from 1-0: what its user says, sealed */
  typed: `${keys.prefix}terminal:${terminal}:typed`,
  /** stream, ids from 1-0: what it shows, sealed */
  shown: `${keys.prefix}terminal:${terminal}:shown`,
  /** pub/sub: it has shown something */
  feed: `${keys.feed}:${terminal}`,
});

/** Keys of a namespace that belong to no session: admission (one shard for now), hosts, inboxes, bells. */
export interface FleetKeys {
  namespace: string;
  /** prefix of the BullMQ queues of sessions, one for each placement class */
  admission: string;
  /** sorted set: session member → when it was recorded or last submitted to (ms) */
  index: string;
  /** hash: session member → `<fence> <host>` */
  owners: string;
  /** counter: the newest fence */
  fence: string;
  /** sorted set: host id → when it last said that it lives (ms) */
  hosts: string;
  /** pub/sub: a session job was added */
  sessionsBell: string;
  /** prefix of the BullMQ queues of tools, a queue each: on a slot of their own */
  tools: string;
  /** sorted set: name of a tool → when a host last offered it (ms) */
  knownTools: string;
  /** pub/sub: a call of the named tool was added */
  toolsBell: string;
}

export function fleetKeys(namespace: string): FleetKeys {
  const admission = `${namespace}:{x0}`;
  const tools = `${namespace}:{tools}`;
  return {
    namespace,
    admission,
    index: `${admission}:index`,
    owners: `${admission}:owners`,
    fence: `${admission}:fence`,
    hosts: `${admission}:hosts`,
    sessionsBell: `${namespace}:bell:sessions`,
    tools,
    knownTools: `${tools}:known`,
    toolsBell: `${tools}:bell`,
  };
}

/** One BullMQ queue for each placement class: a host fetches only from the classes that it offers. */
export const sessionsQueue = (placementClass: string) => `sessions-${placementClass}`;
/** BullMQ refuses `:` and whole numbers in job ids. */
export const sessionJobId = (tenant: string, session: string) => `s~${tenant}~${session}`;
/** undefined when the id is none of ours. */
export function parseSessionJobId(jobId: string): { tenant: string; session: string } | undefined {
  const match = /^s~([A-Za-z0-9._-]{1,128})~([A-Za-z0-9._-]{1,128})$/.exec(jobId);
  return match === null ? undefined : { tenant: match[1] as string, session: match[2] as string };
}
/** The lock of an active session job: the one key name of BullMQ that we touch. A test pins it. */
export const sessionJobLockKey = (fleet: FleetKeys, placementClass: string, jobId: string) =>
  `${fleet.admission}:${sessionsQueue(placementClass)}:${jobId}:lock`;

/** One BullMQ queue a tool: only hosts that offer it look there. */
export const toolQueue = (name: string) => `tool-${name}`;
/** BullMQ takes a whole number for an id of its own. */
export const toolJobId = (call: string) => `call-${call}`;
/** string: who began the call, or ended it before anybody did; it never begins again */
export const toolCallKey = (fleet: FleetKeys, call: string) => `${fleet.tools}:call:${call}`;
/** string: how the call ended, sealed; the first that is written counts */
export const toolResultKey = (fleet: FleetKeys, call: string) => `${fleet.tools}:result:${call}`;
/** stream and channel: calls of a tenant that started and ended */
export const toolEventsKey = (fleet: FleetKeys, tenant: string) => `${fleet.tools}:events:${tenant}`;

/** Keys of one host. */
export const hostKeys = (namespace: string, host: string) => ({
  /** string with JSON, 5 s: the worker lives */
  alive: `${namespace}:host:${host}:alive`,
  /** string, 5 s, renewed: boot id of the one process that may act as this host */
  boot: `${namespace}:host:${host}:boot`,
  /** stream: calls to live shells */
  calls: `${namespace}:host:${host}:calls`,
  /** string with JSON, 5 s: the tools that it offers */
  tools: `${namespace}:host:${host}:tools`,
  /** pub/sub: `<tenant>:<session>` has work, or `calls` has */
  bell: `${namespace}:bell:${host}`,
});

/** stream, expires when its producer is gone: hints that a command ended */
export const inboxKey = (namespace: string, producer: string) => `${namespace}:inbox:${producer}`;
