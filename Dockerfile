# syntax=docker/dockerfile:1
# Three stages: the dependencies that run, the compiled code, and an image with nothing else in it.
ARG NODE_IMAGE=node:26-bookworm-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY scripts ./scripts
COPY src ./src
RUN npm run build

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json ./
COPY config ./config
COPY docs ./docs
COPY config /etc/shopward
USER node
EXPOSE 8080 8081
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s \
  CMD ["node", "dist/main.js", "health"]
ENTRYPOINT ["node", "dist/main.js"]
CMD ["serve", "--config", "/etc/shopward/shopward.yaml"]
