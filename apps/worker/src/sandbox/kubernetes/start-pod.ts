import { setTimeout as delay } from 'node:timers/promises';
import type { ClaimManifest, PodManifest } from '@shellfleet/policy';
import { ShellfleetError } from '@shellfleet/protocol';
import { z } from 'zod';
import type { SandboxDeath } from '../sandbox.ts';
import type { ApiClient, ApiResource } from './api/api-client.ts';
import { isAlreadyThere, isNoObject } from './api/api-errors.ts';
import {
  describeQuota,
  describeUnreachable,
  isOverQuota,
  mayPass,
  metAnotherWrite,
  toClusterError,
} from './cluster-errors.ts';
import { type Pod, podSchema } from './pod-schema.ts';
import { readDeath, readPodState } from './pod-state.ts';
import { PODS, type Pods } from './pods.ts';

// Creates a Pod and waits until its shell's container runs, for as long as the cluster has no room.
//
// START-1. A quota, a scheduler without a node and a silent API server are waited for. What they say is reported.
// START-2. A Pod that the kubelet cannot start is given up at once, with the kubelet's words.
// START-3. A Pod that its node did not accept, or that had to leave it, is created again while nothing of it has begun.

export const CLAIMS: ApiResource = { group: '/api/v1', plural: 'persistentvolumeclaims' };

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 15_000;
/** Interval at which a Pod is asked for, of which a silent watch shows nothing. */
const LOOK_EVERY_MS = 15_000;

export interface StartedPod {
  client: Pick<ApiClient, 'create' | 'get' | 'delete'>;
  pods: Pick<Pods, 'follow' | 'get' | 'refresh'>;
  /** Returns the Pod, with the claim that it needs first, if it needs one. */
  manifests(): Promise<{ pod: PodManifest; claim: ClaimManifest | undefined }>;
  name: string;
  /** Aborts when the Pod is not wanted any more. It may be there nevertheless. */
  signal: AbortSignal;
  /** Receives why the Pod does not run yet, in the words of the cluster. */
  onWait(words: string | undefined): void;
  /** Factor of the waiting times. Default: 1. */
  slowness?: number;
}

/** Creates the Pod. Rejects with IMAGE_UNAVAILABLE, SANDBOX_UNAVAILABLE, SESSION_START_FAILED or as the signal. */
export async function startPod(start: StartedPod): Promise<void> {
  for (let rejections = 0; ; rejections += 1) {
    await createPod(start);
    const end = await untilBegun(start);
    if (end === undefined) return;
    start.onWait(end.words);
    await deleteRejected(start, end.pod);
    await pause(start, rejections);
  }
}

/** Creates the claim and the Pod, as often as it takes (START-1). */
async function createPod(start: StartedPod): Promise<void> {
  const { client, signal, onWait } = start;
  for (let attempts = 0; ; attempts += 1) {
    signal.throwIfAborted();
    try {
      const { pod, claim } = await start.manifests();
      // Not under the signal: whoever gives the Pod up has to know whether it is there.
      if (claim !== undefined) await createOnce(() => client.create(CLAIMS, claim, z.unknown()));
      await createOnce(() => client.create(PODS, pod, podSchema));
      onWait(undefined);
      return;
    } catch (error) {
      if (isOverQuota(error)) onWait(describeQuota(error));
      else if (!metAnotherWrite(error) && mayPass(error)) onWait(describeUnreachable((error as Error).message));
      else if (!metAnotherWrite(error)) throw toClusterError(error, 'to create a Pod');
    }
    await pause(start, attempts);
  }
}

/** Takes an object that is there already as created: its name is random, so an earlier call created it. */
async function createOnce(create: () => Promise<unknown>): Promise<void> {
  await create().catch((error: unknown) => {
    if (!isAlreadyThere(error)) throw error;
  });
}

/** Waits until the shell's container runs. Returns the Pod, and why, if it is to be created again (START-3). */
async function untilBegun({
  client,
  pods,
  name,
  signal,
  onWait,
}: StartedPod): Promise<{ pod: Pod; words: string } | undefined> {
  const begun = Promise.withResolvers<{ pod: Pod; words: string } | undefined>();
  // Nobody may wait for it yet when it rejects.
  begun.promise.catch(() => {});
  const abort = () => begun.reject(signal.reason);
  const look = (pod: Pod, isGone: boolean) => {
    const state = readPodState(pod);
    if (state.type === 'running') begun.resolve(undefined);
    else if (state.type === 'rejected') begun.resolve({ pod, words: state.words });
    else if (state.type === 'refused') begun.reject(toRefusal(state));
    else if (isGone && readDeath(pod).detail !== undefined) begun.resolve({ pod, words: readDeath(pod).detail ?? '' });
    else if (isGone) begun.reject(endedEarly(pod));
    else if (state.type === 'dead') begun.reject(endedEarly(pod, describeEnd(state.death)));
    else onWait(state.waitsFor);
  };
  const ask = () =>
    client.get(PODS, name, podSchema).then(
      ({ metadata }) => {
        if (pods.get(name)?.metadata.resourceVersion !== metadata.resourceVersion) pods.refresh();
      },
      (error: unknown) => {
        if (isNoObject(error)) begun.reject(endedEarly());
      },
    );
  signal.addEventListener('abort', abort, { once: true });
  const unfollow = pods.follow(name, look);
  const looks = setInterval(ask, LOOK_EVERY_MS);
  try {
    signal.throwIfAborted();
    return await begun.promise;
  } finally {
    clearInterval(looks);
    unfollow();
    signal.removeEventListener('abort', abort);
  }
}

/** Deletes a Pod of which nothing has begun, and waits until its name is free. */
async function deleteRejected({ client, pods, name, signal }: StartedPod, pod: Pod): Promise<void> {
  const gone = Promise.withResolvers<void>();
  gone.promise.catch(() => {});
  const abort = () => gone.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const unfollow = pods.follow(name, ({ metadata }, isGone) => {
    if (isGone || metadata.uid !== pod.metadata.uid) gone.resolve();
  });
  try {
    const { uid } = pod.metadata;
    await client.delete(PODS, name, { gracePeriodSeconds: 0, preconditions: { uid } }).catch((error: unknown) => {
      if (!isNoObject(error)) throw toClusterError(error, 'to delete a Pod');
      gone.resolve();
    });
    await gone.promise;
  } finally {
    unfollow();
    signal.removeEventListener('abort', abort);
  }
}

function toRefusal({ for: what, image, words }: Extract<ReturnType<typeof readPodState>, { type: 'refused' }>) {
  if (what === 'image')
    return new ShellfleetError(
      'IMAGE_UNAVAILABLE',
      `The cluster has no image ${image}: ${words}. Check its name, and the pull secrets in kubernetes.pullSecrets.`,
      { image, kubelet: words },
    );
  return new ShellfleetError(
    'SESSION_START_FAILED',
    `The kubelet cannot start a container of the image ${image}: ${words}.`,
    {
      image,
      kubelet: words,
    },
  );
}

function endedEarly(pod?: Pod, detail = 'it was deleted'): ShellfleetError {
  const where = pod?.spec.nodeName === undefined ? '' : ` on the node ${pod.spec.nodeName}`;
  return new ShellfleetError(
    'SESSION_START_FAILED',
    `The session's Pod ended${where} before its shell began: ${detail}.`,
  );
}

const describeEnd = ({ detail, exitCode }: SandboxDeath) => detail ?? `its container ended with ${exitCode}`;

/** Waits for a random time within a bound that doubles with each attempt. */
async function pause({ signal, slowness = 1 }: StartedPod, attempts: number): Promise<void> {
  const most = Math.min(FIRST_WAIT_MS * 2 ** attempts, LONGEST_WAIT_MS) * slowness;
  await delay(most * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => signal.throwIfAborted());
}
