import type Docker from 'dockerode';
import type { Injection, Stage } from './stage.ts';

/** Returns a running container of an exposed session. */
async function pickContainer(
  { fleet, docker, exposedSessions }: Stage,
  choice: number,
): Promise<{ session: string; container: Docker.Container } | undefined> {
  const filters = { label: [`shellfleet.namespace=${fleet.namespace}`], status: ['running'] };
  const found = await docker.listContainers({ filters });
  const exposed = found
    .map(({ Id, Labels }) => ({ id: Id, session: Labels['shellfleet.session'] ?? '' }))
    .filter(({ session }) => exposedSessions.includes(session))
    .sort((a, b) => a.session.localeCompare(b.session));
  const picked = exposed[Math.floor(choice * exposed.length)];
  return picked && { session: picked.session, container: docker.getContainer(picked.id) };
}

/** Injects a fault of one call. The container may end for another reason before the fault reaches it. */
const once =
  (act: (container: Docker.Container) => Promise<unknown>): Injection =>
  async (stage, choice) => {
    const picked = await pickContainer(stage, choice);
    if (picked === undefined) return undefined;
    await act(picked.container).catch(() => {});
    return { target: picked.session, heal: async () => {} };
  };

const pause: Injection = async (stage, choice) => {
  const picked = await pickContainer(stage, choice);
  if (picked === undefined) return undefined;
  await picked.container.pause().catch(() => {});
  return {
    target: picked.session,
    async heal() {
      await picked.container.unpause().catch(() => {});
    },
  };
};

export const containerFaults = {
  'container-kill': once((container) => container.kill()),
  'container-remove': once((container) => container.remove({ force: true })),
  'container-pause': pause,
};
