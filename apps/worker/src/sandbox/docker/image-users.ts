import { type DockerPlan, USERS_SETTING, withSetting } from '@shellfleet/policy';
import { ShellfleetError } from '@shellfleet/protocol';
import { MissingImage } from '../sandbox.ts';
import { isMissingImage, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';
import type { SessionPasswd } from './session-passwd.ts';

// A session may ask for the user of its image, or for one by name. The image decides which uid that is, and it may be 0. So it is looked up
// before the container is made, and the container gets the number.

type Ids = DockerPlan['owner'];

export class ImageUsers {
  readonly #engine: Engine;
  readonly #passwd: SessionPasswd;
  readonly #allowed: readonly string[];

  /** `allowed`: what the operator allows; root only if it is listed. */
  constructor(engine: Engine, passwd: SessionPasswd, allowed: readonly string[]) {
    this.#engine = engine;
    this.#passwd = passwd;
    this.#allowed = allowed;
  }

  /**
   * The plan with the numbers of its user. Throws SANDBOX_UNAVAILABLE when that is root and may not be, and MissingImage. `labels`: of a container
   * that is made for reading the image, and removed.
   */
  async resolve(plan: DockerPlan, labels: Record<string, string>): Promise<DockerPlan> {
    if (plan.user !== undefined && /^[0-9]/.test(plan.user)) return plan;
    const owner = await this.#idsOf(plan, labels).catch((error: unknown) => {
      throw isMissingImage(error) ? new MissingImage(plan.image) : toShellfleetError(error, 'to look at an image');
    });
    // The engine refuses a name that the image does not have.
    if (owner === undefined) return plan;
    if ((owner.uid === 0 || owner.gid === 0) && !this.#allowed.includes('root')) throw isRoot(plan);
    return { ...plan, user: `${owner.uid}:${owner.gid}`, owner };
  }

  async #idsOf({ image, user }: DockerPlan, labels: Record<string, string>): Promise<Ids | undefined> {
    const [name = '', group] = (user ?? (await this.#userOf(image))).split(':');
    if (name === 'root') return { uid: 0, gid: toNumber(group) ?? 0 };
    const lines = (await this.#passwd.ofImage(image, labels)).split('\n').map((line) => line.split(':'));
    const entry = lines.find(([of, , uid]) => of === name || uid === name);
    const uid = toNumber(name) ?? toNumber(entry?.[2]);
    if (uid === undefined) return undefined;
    // Without an entry the engine would give it the group of root.
    return { uid, gid: group === 'root' ? 0 : (toNumber(group) ?? toNumber(entry?.[3]) ?? uid) };
  }

  /** An image that names none has root. */
  async #userOf(image: string): Promise<string> {
    const { Config: config } = await this.#engine.call((docker) => docker.getImage(image).inspect());
    return config.User || 'root';
  }
}

function toNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^[0-9]{1,10}$/.test(text) ? Number(text) : undefined;
}

function isRoot({ image, user }: DockerPlan): ShellfleetError {
  const message = `${user === undefined ? 'the image runs as' : `${user} is`} root in ${image}, and ${withSetting('this host does not allow root', USERS_SETTING)}`;
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The host does not run what the session asks for. user: ${message}. Leave it out, or give uid:gid.`,
    { issues: [{ path: 'user', message }] },
  );
}
