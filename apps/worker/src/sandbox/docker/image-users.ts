import { type DockerPlan, USERS_SETTING, withSetting } from '@shellfleet/policy';
import { ShellfleetError } from '@shellfleet/protocol';
import { MissingImage } from '../sandbox.ts';
import { isMissingImage, toShellfleetError } from './docker-errors.ts';
import type { FoundImage } from './find-image.ts';
import type { SessionPasswd } from './session-passwd.ts';

// The image decides the uid of a user, which may be 0. So it is looked up before the container is created.

type Ids = DockerPlan['owner'];

export class ImageUsers {
  readonly #passwd: SessionPasswd;
  readonly #allowed: readonly string[];

  /** Creates the lookup with the users that the operator allows. root is allowed only if it is listed. */
  constructor(passwd: SessionPasswd, allowed: readonly string[]) {
    this.#passwd = passwd;
    this.#allowed = allowed;
  }

  /**
   * Returns the plan with numeric ids. Throws MissingImage, or SANDBOX_UNAVAILABLE when the user is root and root is
   * not allowed. `labels` mark the container that is created for reading the image, then removed.
   */
  async resolve(plan: DockerPlan, image: FoundImage, labels: Record<string, string>): Promise<DockerPlan> {
    if (plan.user !== undefined && /^[0-9]/.test(plan.user)) return plan;
    const owner = await this.#idsOf(plan.user ?? (image.config.User || 'root'), image.digest, labels).catch(
      (error: unknown) => {
        throw isMissingImage(error) ? new MissingImage(image.name) : toShellfleetError(error, 'to look at an image');
      },
    );
    // If the image has no user of that name, the engine reports it.
    if (owner === undefined) return plan;
    if ((owner.uid === 0 || owner.gid === 0) && !this.#allowed.includes('root')) throw isRoot(plan);
    return { ...plan, user: `${owner.uid}:${owner.gid}`, owner };
  }

  /** Returns uid and gid of a user of the image. An image that names no user runs as root. */
  async #idsOf(user: string, digest: string, labels: Record<string, string>): Promise<Ids | undefined> {
    const [name = '', group] = user.split(':');
    if (name === 'root') return { uid: 0, gid: toNumber(group) ?? 0 };
    const lines = (await this.#passwd.ofImage(digest, labels)).split('\n').map((line) => line.split(':'));
    const entry = lines.find(([of, , uid]) => of === name || uid === name);
    const uid = toNumber(name) ?? toNumber(entry?.[2]);
    if (uid === undefined) return undefined;
    // Without an entry, the engine would use the group of root.
    return { uid, gid: group === 'root' ? 0 : (toNumber(group) ?? toNumber(entry?.[3]) ?? uid) };
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
