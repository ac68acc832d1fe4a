import { checkCwd, type DockerPlan } from '@shellfleet/policy';
import { IMAGE_CWD, ShellfleetError } from '@shellfleet/protocol';
import { MissingImage } from '../sandbox.ts';
import { isMissingImage, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';

/**
 * The plan with the directory of its image, if its session asks for that. Throws SANDBOX_UNAVAILABLE for a directory that a session may not start in
 * (CVE-2024-21626), and MissingImage.
 */
export async function withImageFolder(plan: DockerPlan, engine: Engine): Promise<DockerPlan> {
  if (plan.cwd !== IMAGE_CWD) return plan;
  const { image } = plan;
  const found = await engine
    .call((docker) => docker.getImage(image).inspect())
    .catch((error: unknown) => {
      throw isMissingImage(error) ? new MissingImage(image) : toShellfleetError(error, 'to look at an image');
    });
  const cwd = found.Config.WorkingDir || '/';
  if (cwd.startsWith('/') && checkCwd(cwd).length === 0) return { ...plan, cwd };
  const message = `the image ${image} starts in ${cwd}, which is no ordinary folder`;
  throw new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The host does not run what the session asks for. cwd: ${message}. Name a directory.`,
    { issues: [{ path: 'cwd', message }] },
  );
}
