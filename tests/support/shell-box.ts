// One container for a file of tests, opened once and removed at its end.
import { afterAll, beforeAll, inject } from 'vitest';
import { KeeperContainer, type KeeperContainerOptions } from './keeper-container.ts';
import { ShellClient } from './shell-client.ts';

export type ImageName = 'session' | 'dashOnly' | 'busybox' | 'noShell';

function imageOf(name: ImageName): string {
  return name === 'session' ? inject('sessionImage') : inject('testImages')[name];
}

export type BoxOptions = Omit<KeeperContainerOptions, 'dockerHost' | 'image'> & { image?: ImageName };

function boxOptions({ image = 'session', ...rest }: BoxOptions): KeeperContainerOptions {
  return { dockerHost: inject('dockerHost'), image: imageOf(image), ...rest };
}

export interface ShellBox extends AsyncDisposable {
  box: KeeperContainer;
  client: ShellClient;
}

export async function openBox(options: BoxOptions = {}): Promise<ShellBox> {
  const { box, shell } = await KeeperContainer.start(boxOptions(options));
  return { box, client: new ShellClient(shell), [Symbol.asyncDispose]: () => box[Symbol.asyncDispose]() };
}

/** For the describe block that calls it. */
export function useBox(options: BoxOptions = {}): ShellBox {
  let opened: ShellBox | undefined;
  beforeAll(async () => {
    opened = await openBox(options);
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());
  const box = (): ShellBox => {
    if (!opened) throw new Error('The container is not open yet.');
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
