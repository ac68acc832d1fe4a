// One container, or one shell on the host, for a file of tests, opened once and removed at its end.
import { afterAll, beforeAll, beforeEach, inject } from 'vitest';
import { isRoot } from './host-leftovers.ts';
import {
  type KeeperBox,
  KeeperContainer,
  type KeeperContainerOptions,
  type KeeperTransport,
} from './keeper-container.ts';
import { KeeperOnHost } from './keeper-on-host.ts';
import { ShellClient } from './shell-client.ts';

export type ImageName = 'session' | 'dashOnly' | 'busybox' | 'noShell';

function imageOf(name: ImageName): string {
  return name === 'session'
    ? (process.env.SHELLFLEET_TEST_IMAGE ?? inject('sessionImage'))
    : inject('testImages')[name];
}

/** The transport of a shell on the host. */
export const host = ['host'] as const;

/** Skips the tests of the describe block that calls this, if shells on the host are tested without root. */
export function skipWithoutRoot(transport: BoxOptions['transport']): void {
  if (transport !== 'host' || isRoot) return;
  beforeEach(({ skip }) => skip('a shell on the host needs root'));
}

type ContainerOptions = Omit<KeeperContainerOptions, 'dockerHost' | 'image'> & { image?: ImageName };
export type BoxOptions = Omit<ContainerOptions, 'transport'> & { transport?: KeeperTransport | 'host' };

export interface ShellBox<Box extends KeeperBox = KeeperContainer> extends AsyncDisposable {
  box: Box;
  client: ShellClient;
}

/** Opens a box. With the transport `host` the shell has the host policy, without a container or an image. */
export async function openBox(options?: ContainerOptions): Promise<ShellBox>;
export async function openBox(options: BoxOptions): Promise<ShellBox<KeeperBox>>;
export async function openBox(options: BoxOptions = {}): Promise<ShellBox<KeeperBox>> {
  const { transport, ...rest } = options;
  const { box, shell } =
    transport === 'host'
      ? await KeeperOnHost.start(rest)
      : await KeeperContainer.start(containerOptions({ ...rest, ...(transport && { transport }) }));
  return { box, client: new ShellClient(shell), [Symbol.asyncDispose]: () => box[Symbol.asyncDispose]() };
}

/** Opens a box for the describe block that calls it. */
export function useBox(options?: ContainerOptions): ShellBox;
export function useBox(options: BoxOptions): ShellBox<KeeperBox>;
export function useBox(options: BoxOptions = {}): ShellBox<KeeperBox> {
  let opened: ShellBox<KeeperBox> | undefined;
  skipWithoutRoot(options.transport);
  beforeAll(async () => {
    if (options.transport !== 'host' || isRoot) opened = await openBox(options);
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());
  const box = (): ShellBox<KeeperBox> => {
    if (!opened) throw new Error('The shell is not open yet.');
    return opened;
  };
  return {
    get box() {
      return box().box;
    },
    get client() {
      return box().client;
    },
    [Symbol.asyncDispose]: async () => {},
  };
}

function containerOptions({ image = 'session', ...rest }: ContainerOptions): KeeperContainerOptions {
  return { dockerHost: inject('dockerHost'), image: imageOf(image), ...rest };
}
