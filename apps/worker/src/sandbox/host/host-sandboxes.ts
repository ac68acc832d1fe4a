import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { realpath } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { KEEPER_PROTOCOL_VERSION } from '@shellfleet/keeper';
import {
  type HostAllowances,
  type HostPolicyPlan,
  resolveSandbox,
  type SandboxAllowances,
  WORKSPACE_PATH,
} from '@shellfleet/policy';
import { type ResolvedSessionSpec, sessionSpecSchema, withDefaultLimits } from '@shellfleet/protocol';
import { egressEnv } from '../egress-env.ts';
import { deriveKeeperSecrets } from '../keeper-secrets.ts';
import { makeWorkspace } from '../make-workspace.ts';
import { withRealWorkspace } from '../real-workspace.ts';
import type {
  Beside,
  CreateOptions,
  FoundSandbox,
  HostLimits,
  KeeperLink,
  Sandbox,
  SandboxDeath,
  Sandboxes,
  SessionRef,
} from '../sandbox.ts';
import { sandboxName } from '../sandbox-name.ts';
import { openSessionDirectories, type SessionDirectories } from '../session-directory.ts';
import type { ControlGroups } from './control-groups/control-groups.ts';
import { openControlGroups } from './control-groups/open-control-groups.ts';
import { type Enclosure, noEnclosure } from './enclosure.ts';
import { SYSTEM_PATH } from './find-program.ts';
import { findHostUser, type HostUser, type HostUserSettings } from './host-user.ts';
import { launch } from './launch.ts';
import { isAlive, killAndWait, type LiveProcess } from './live-process.ts';
import { probe } from './probe.ts';
import { ProcessWatch } from './process-watch.ts';
import { type HostRecord, openRecords, type RecordDirectory, type Records } from './records.ts';
import { checkSameWorkspace } from './same-workspace.ts';
import { openTemporaryWorkspaces, type TemporaryWorkspaces } from './temporary-workspaces.ts';
import { unavailable } from './unavailable.ts';

// The policy `host`: the same keeper, on the host itself, as a user that the operator chooses. The parts of a sandbox
// (a record, a directory with keeper and socket, a control group, a workspace) have its name and are removed with it.
//
// HOST-POLICY-1. The record is written before any other part is created, and removed after all others. Whenever the
//     worker dies, its next start finds everything.
// HOST-POLICY-2. A process is killed only by pid and start time. All processes in its pid namespace end with it.

const KEEPER_DIRECTORY = '/.shellfleet';
const RUN_DIRECTORY = '/.shellfleet-run';
const KILL_DEADLINE_MS = 5_000;
const SIGNALLED = 128;
const NO_EVENTS = { kills: 0, atLimit: false };

export interface HostSandboxesOptions {
  namespace: string;
  hostKey: Buffer;
  /** Directory of this host for the policy's files. Its path must be short, because unix sockets are in it. */
  directory: string;
  keeperPath: string;
  launcherPath: string;
  user: HostUserSettings;
  workspaces: readonly string[];
  bounds: { memoryBytes: number; cpus: number; pids: number };
  /** What sessions may ask for. Default: DEFAULT_SANDBOX_ALLOWANCES. */
  sandbox?: SandboxAllowances;
  /** Whether a session may turn off the built-in redaction of formats. Default: no. */
  redactFormats?: boolean;
  controlGroups: { top: string; below: string };
  /** Directories of the host with its keys, hidden from sessions. */
  hidden: string[];
  /** Sockets that give their user the rights of root. */
  sockets: string[];
  /** Program that encloses the keeper. Default: none, for the policy `host`. */
  enclosure?: Enclosure;
}

/** Opens the policy `host`, or one built on it. Throws SANDBOX_UNAVAILABLE when the host cannot meet the settings. */
export async function createHostSandboxes(options: HostSandboxesOptions): Promise<HostSandboxes> {
  const enclosure = options.enclosure ?? noEnclosure;
  if (process.platform !== 'linux') throw unavailable(enclosure.policy, 'it needs Linux');
  const user = await findHostUser(options.user, process.getuid?.() ?? 0, process.getgid?.() ?? 0).catch(
    (cause: Error) => {
      throw unavailable(enclosure.policy, cause.message);
    },
  );
  const groups = await openControlGroups(options.controlGroups.top, options.controlGroups.below);
  return new HostSandboxes(options, {
    user,
    enclosure,
    records: await openRecords(join(options.directory, 'r')),
    directories: await openSessionDirectories(join(options.directory, 's'), options.keeperPath),
    workspaces: await openTemporaryWorkspaces(join(options.directory, 'w'), user),
    // Links are resolved: while the session's root directory is built, an absolute link leads to the host's own
    // directories.
    hidden: await Promise.all(options.hidden.map((path) => realpath(path).catch(() => path))),
    ...(typeof groups === 'string' ? { noGroups: groups } : { groups }),
  });
}

interface Parts {
  user: HostUser;
  enclosure: Enclosure;
  records: Records;
  directories: SessionDirectories;
  workspaces: TemporaryWorkspaces;
  hidden: string[];
  groups?: ControlGroups;
  noGroups?: string;
}

/** Each of these sandboxes was made for its session. */
type Found = Extract<FoundSandbox, { sandbox: Sandbox }>;

export class HostSandboxes implements Sandboxes {
  readonly #options: HostSandboxesOptions;
  readonly #parts: Parts;
  readonly #ends = new ProcessWatch();

  constructor(options: HostSandboxesOptions, parts: Parts) {
    this.#options = options;
    this.#parts = parts;
  }

  /** User and limits of the sessions, for the operator. */
  get description(): string {
    const { user, noGroups } = this.#parts;
    const who = `as uid ${user.uid}${user.isOurs ? ", the worker's own" : ''}`;
    return noGroups === undefined ? who : `${who}, without limits on cpus and pids (${noGroups})`;
  }

  async check(): Promise<void> {
    const { user, enclosure, records, workspaces, hidden } = this.#parts;
    const { launcherPath, sockets } = this.#options;
    const keys = [...new Set([...this.#options.hidden, ...hidden])];
    const request = { launcherPath, user, scratchBytes: 2 ** 20, groups: [], hidden };
    const none = { addressSpaceBytes: undefined, cpuTimeSeconds: undefined, fileSizeBytes: undefined };
    const spec = sessionSpecSchema.parse({ policy: enclosure.policy });
    const { program: enclosureProgram } = enclosure.plan(spec, this.#allowances);
    const opened = enclosure.descriptor === undefined ? {} : { descriptor: enclosure.descriptor };
    await probe(
      { ...request, ...none, ...opened, enclosure, enclosureProgram },
      { records, workspaces, sockets, keys },
    );
  }

  async create(
    session: SessionRef,
    given: ResolvedSessionSpec,
    { beside }: Pick<CreateOptions, 'beside'> = {},
  ): Promise<Sandbox> {
    const { groups, records, directories, enclosure } = this.#parts;
    const spec = await withRealWorkspace(given);
    const { plan, program } = enclosure.plan(spec, this.#allowancesOf(beside));
    const sandboxId = randomBytes(6).toString('hex');
    const name = sandboxName(session, sandboxId);
    const record: HostRecord = {
      ...{ session, sandboxId, keeperProtocol: KEEPER_PROTOCOL_VERSION, createdAt: Date.now() },
      ...(beside === undefined ? {} : { beside: beside.sandboxId }),
    };
    try {
      await records.at(name).write(record); // HOST-POLICY-1
      const directory = await directories.create(name);
      const workspace = await this.#workspaceOf(name, plan, record);
      const joined = plan.group === undefined ? [] : ((await groups?.create(name, plan.group)) ?? []);
      const start = () =>
        this.#launch(name, record, spec, plan, { directory: directory.path, workspace, joined, enclosure: program });
      return this.#toSandbox(name, record, { start });
    } catch (error) {
      await this.#remove(name);
      throw error;
    }
  }

  /** Returns the workspace. A second sandbox uses that of the first and creates none (SANDBOX-4). */
  async #workspaceOf(name: string, plan: HostPolicyPlan, { session, beside }: HostRecord): Promise<string> {
    const { workspaces, user } = this.#parts;
    if (beside !== undefined) return plan.workspace ?? workspaces.at(sandboxName(session, beside));
    if (plan.workspace !== undefined) await makeWorkspace(plan.workspace, this.#options.workspaces, user);
    return plan.workspace ?? workspaces.create(name);
  }

  async limits(): Promise<HostLimits> {
    return { controlGroups: this.#parts.groups !== undefined };
  }

  /** Does nothing: sessions of this policy run no image. */
  async pull(): Promise<void> {}

  problem(): undefined {
    return undefined;
  }

  /** Does nothing: the next start of the worker finds the rest of a failed removal (HOST-POLICY-1). */
  async sweep(): Promise<number> {
    return 0;
  }

  async list(): Promise<Found[]> {
    const { records, directories, workspaces, groups } = this.#parts;
    const names = await records.names();
    const found: Found[] = [];
    for (const name of names) {
      const record = await records.at(name).read();
      if (record === undefined || name !== sandboxName(record.session, record.sandboxId)) {
        await this.#remove(name);
        continue;
      }
      if (record.session.namespace !== this.#options.namespace) continue;
      if (record.beside !== undefined) {
        found.push({ sandbox: this.#toSandbox(name, record, {}), state: 'beside' });
        continue;
      }
      const process_ = await records.at(name).process();
      const isRunning = process_ !== undefined && (await isAlive(process_));
      const sandbox = this.#toSandbox(name, record, isRunning ? { running: process_ } : {});
      found.push({ sandbox, state: isRunning ? 'running' : process_ === undefined ? 'created' : 'dead' });
    }
    await directories.sweep(new Set(names));
    for (const name of [...(await workspaces.names()), ...((await groups?.names()) ?? [])]) {
      if (!names.includes(name)) await this.#remove(name);
    }
    return found;
  }

  async close(): Promise<void> {
    this.#ends.close();
    await this.#parts.groups?.close();
  }

  get #allowances(): HostAllowances {
    return this.#allowancesOf(undefined);
  }

  #allowancesOf(beside: Beside | undefined): HostAllowances {
    const { workspaces, bounds, redactFormats = false } = this.#options;
    const sandbox = beside?.allowances ?? this.#options.sandbox;
    return {
      workspaces,
      redactFormats,
      bounds: { ...bounds, diskQuota: false },
      controlGroups: this.#parts.groups !== undefined,
      ...(sandbox === undefined ? {} : { sandbox }),
    };
  }

  #toSandbox(
    name: string,
    record: HostRecord,
    process_: { start?: () => Promise<LiveProcess>; running?: LiveProcess },
  ): Sandbox {
    const { session, sandboxId, keeperProtocol, createdAt } = record;
    const died = Promise.withResolvers<SandboxDeath>();
    const watch = (running: LiveProcess) =>
      void this.#ends.watch(running).then(async () => died.resolve(await this.#deathOf(name)));
    if (process_.running !== undefined) watch(process_.running);
    return {
      id: sandboxId,
      session,
      description: `${this.#parts.enclosure.policy} shell ${sandboxId}`,
      createdAt,
      keeperProtocol,
      link: this.#toLink(name, record),
      egressPath: this.#parts.directories.at(name).egressPath,
      died: died.promise,
      use: async () => ({ processorMs: await this.#parts.groups?.processorMs(name) }),
      start: async () => {
        if (process_.start !== undefined) watch(await process_.start());
      },
      remove: async () => {
        await this.#remove(name);
        died.resolve({ reason: 'removed', exitCode: null });
      },
    };
  }

  #toLink(name: string, { session, sandboxId }: HostRecord): KeeperLink {
    const { token, syncWord } = deriveKeeperSecrets(this.#options.hostKey, session.namespace, sandboxId);
    const path = this.#parts.directories.at(name).socketPath;
    if (!this.#parts.enclosure.isRelayed) return { type: 'socket', path, token };
    const open = async () => {
      const socket = connect(path);
      await once(socket, 'connect');
      return socket;
    };
    return { type: 'attach', token, syncWord, opensAfterStart: true, open };
  }

  async #launch(
    name: string,
    { session, sandboxId, beside }: HostRecord,
    spec: ResolvedSessionSpec,
    plan: HostPolicyPlan,
    made: { directory: string; workspace: string; joined: string[]; enclosure: string[] },
  ): Promise<LiveProcess> {
    const { user, enclosure, records, hidden } = this.#parts;
    const { launcherPath, hostKey } = this.#options;
    const record: RecordDirectory = records.at(name);
    const { token, syncWord } = deriveKeeperSecrets(hostKey, session.namespace, sandboxId);
    const path = this.#parts.directories.at(name).socketPath;
    const secrets = { SF_TOKEN: token, ...(enclosure.isRelayed ? { SF_SYNC: syncWord } : {}) };
    await launch({
      policy: enclosure.policy,
      launcherPath,
      record,
      user,
      keeperDirectory: made.directory,
      workspace: made.workspace,
      // Pages of a tmpfs count as memory of the session, so a session can hardly use more than half of the limit.
      scratchBytes: Math.floor(withDefaultLimits(spec.limits).memoryBytes / 2),
      groups: made.joined,
      hidden,
      ...plan.process,
      ...(enclosure.descriptor === undefined ? {} : { descriptor: enclosure.descriptor }),
      ...(enclosure.isRelayed ? { relay: path } : {}),
      program: [
        ...made.enclosure,
        `${KEEPER_DIRECTORY}/keeper`,
        enclosure.isRelayed ? '-' : `${KEEPER_DIRECTORY}/socket`,
        ...(spec.shell ?? []),
      ],
      env: {
        PATH: SYSTEM_PATH,
        HOME: WORKSPACE_PATH,
        SF_DIRECTORY: enclosure.runDirectory ?? RUN_DIRECTORY,
        ...enclosure.env,
        ...secrets,
        ...(resolveSandbox(spec).network === 'limited' ? egressEnv(KEEPER_DIRECTORY) : {}),
      },
    });
    const process_ = await record.process();
    if (process_ === undefined) throw new Error(`the launcher of ${name} did not record its process`);
    if (beside !== undefined) {
      const own = await records.at(sandboxName(session, beside)).process();
      await checkSameWorkspace(own, process_, enclosure.policy);
    }
    return process_;
  }

  async #deathOf(name: string): Promise<SandboxDeath> {
    const end = await this.#parts.records.at(name).end();
    // An enclosure exits with a number above SIGNALLED when its program was killed.
    const isKilled = end?.how === 'killed' || (end?.number ?? 0) > SIGNALLED;
    if (end !== undefined && !isKilled) return { reason: 'exited', exitCode: end.number };
    const { kills, atLimit } = (await this.#parts.groups?.memoryEvents(name).catch(() => undefined)) ?? NO_EVENTS;
    if (kills === 0) return { reason: 'killed', exitCode: null };
    // Without its own limit, the group lost processes for the memory of the whole host.
    return { reason: atLimit ? 'oom' : 'host-memory', exitCode: null };
  }

  async #remove(name: string): Promise<void> {
    const { records, directories, workspaces, groups } = this.#parts;
    const record = records.at(name);
    const process_ = await record.process();
    if (process_ !== undefined && !(await killAndWait(process_, KILL_DEADLINE_MS)))
      throw new Error(`process ${process_.pid} of ${name} does not end`);
    await groups?.remove(name);
    await workspaces.remove(name);
    await directories.at(name).remove();
    await record.remove();
  }
}
