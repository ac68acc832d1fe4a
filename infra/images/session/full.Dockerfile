# The session image `full` where `slim` could be pulled: Debian's packages on top of it. The pulled one has npm.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
ARG PACKAGES
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ${PACKAGES} \
 && rm -rf /var/lib/apt/lists/* /usr/lib/python3*/EXTERNALLY-MANAGED \
 && install -d -m 755 -o 1000 -g 1000 /workspace
ARG USER_PATH
ARG NPM_PREFIX
ENV PATH=${USER_PATH} NPM_CONFIG_PREFIX=${NPM_PREFIX}
