import { finish, release, take } from '@shellfleet/mailbox';
import { sessionJobLockKey } from '@shellfleet/placement';
import { fleetKeys, type SessionKeys, sessionKeys, tenantKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { finishAs, own } from './mailbox-session.ts';

const MOST_AT_ONCE = 256;
const POLL_MS = 10;

/** A host whose shells are simulated: every command succeeds at once, and its session is released. */
export class SimulatedSessions {
  readonly #redis: Redis;
  readonly #keyspace: string;
  /** Sessions that have no command yet. */
  #early: SessionKeys[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Number of commands that have ended. */
  ran = 0;
  /** Error of a session, which ends the host. */
  failure: unknown;

  constructor(redis: Redis, keyspace: string) {
    this.#redis = redis;
    this.#keyspace = keyspace;
    this.#look();
  }

  stop(): void {
    this.failure ??= 'stopped';
    clearTimeout(this.#timer);
  }

  /** Serves the sessions that were noted in the index, as upkeep finds them, and looks again. */
  #look(): void {
    const { index } = tenantKeys(this.#keyspace, 'default');
    const serveNoted = async () => {
      const noted = await this.#redis.zpopmin(index, MOST_AT_ONCE);
      const found = noted.filter((_value, at) => at % 2 === 0).map((id) => sessionKeys(this.#keyspace, 'default', id));
      const sessions = [...this.#early, ...found];
      this.#early = [];
      await Promise.all(sessions.map((keys) => this.#serve(keys)));
    };
    serveNoted().then(
      () => {
        if (this.failure === undefined) this.#timer = setTimeout(() => this.#look(), POLL_MS);
      },
      (error: unknown) => {
        this.failure ??= error;
      },
    );
  }

  async #serve(keys: SessionKeys): Promise<void> {
    if ((await this.#redis.llen(keys.queue)) === 0) return void this.#early.push(keys);
    const owner = await own(this.#redis, keys);
    const taken = await take(owner);
    if (taken.type !== 'started') throw new Error(`${keys.session}: ${taken.type}`);
    const { id, inbox } = taken.entry;
    // Redis runs these one after the other, so the session has no owner any more when its driver closes it.
    await Promise.all([
      finish(owner, id, { ...finishAs('success'), inbox }),
      release(owner, 'queued'),
      this.#redis.hdel(fleetKeys(this.#keyspace).owners, keys.member),
      this.#redis.del(sessionJobLockKey(fleetKeys(this.#keyspace), 'docker', keys)),
    ]);
    this.ran++;
  }
}
