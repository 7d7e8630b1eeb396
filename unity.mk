# SPDX-License-Identifier: BSD-3-Clause
# Compiles each folder of the engine, of the provider and of the tools as one file, and several suites as one, since most
# of what the compiler reads is headers:
#   MAKEFILES=/path/to/unity.mk make
# It replaces the lists of objects, so it is read before the Makefile. All builds of `./quickstart` are made so; `make
# check-sources` reads the sources one by one.
unity_root := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
# libfabric, loaded late, is a library of its own.
unity_core := $(filter-out %/late/,$(sort $(dir $(wildcard $(addprefix $(unity_root),src/base/*.cc src/uc[stp]/*.cc \
	src/uc[stp]/*/*.cc src/uc[stp]/*/*/*.cc)))))
unity_provider := $(sort $(dir $(wildcard $(addprefix $(unity_root),prov/ucxlike/*.cc prov/ucxlike/*/*.cc))))
unity_tools := $(unity_root)src/tools/
unity_selftest := $(unity_root)src/tools/selftest/
# Files with names of their own that another file of their folder has, too.
unity_alone := $(addprefix $(unity_root),prov/ucxlike/data/rma.cc src/ucp/rma/put.cc src/ucs/config/environment.cc \
	src/ucs/config/ucx_variables_newer.cc src/uct/ofi/fabric/link.cc src/uct/sm/inbox_memory.cc)

unity_name = unity/$(subst /,_,$(patsubst %/,%,$(1:$(unity_root)%=%))).lo
unity_objects = $(foreach folder,$1,$(call unity_name,$(folder))) \
	$(patsubst $(unity_root)%.cc,%.lo,$(filter $(addsuffix %,$1),$(unity_alone)))
override libucxlike_core_la_OBJECTS := $(call unity_objects,$(unity_core))
override libucxlike_fi_la_OBJECTS := $(call unity_objects,$(unity_provider))
override ucxlike_info_OBJECTS := $(call unity_objects,$(unity_tools))
override ucxlike_selftest_OBJECTS := $(call unity_objects,$(unity_selftest))

# What most of them read of C++ (first_headers, of the Makefile) is compiled once, unless ccache compiles: that does not
# keep what is compiled so.
unity_first := unity/first.h.gch
$(unity_first):
	@mkdir -p unity
	@printf '#include <%s>\n' $(first_headers) >unity/first.h
	$(if $(findstring ccache,$(CXX)),@: >$@,$(AM_V_CXX)$(CXXCOMPILE) -fPIC -DPIC -x c++-header unity/first.h -o $@)
unity_first_flags = $(if $(findstring ccache,$(CXX)),,-include unity/first.h)

unity_headers := $(wildcard $(addprefix $(unity_root),src/*/*.h src/*/*/*.h src/*/*/*/*.h prov/*/*.h prov/*/*/*.h))
define unity_rule
$(call unity_name,$1): $(filter-out $(unity_alone),$(wildcard $1*.cc)) $(unity_headers) | $(unity_first)
	@mkdir -p unity
	@printf '#include "%s"\n' $$(filter %.cc,$$^) >$$(@:.lo=.cc)
	$$(AM_V_CXX)$$(LTCXXCOMPILE) $$(unity_first_flags) -c -o $$@ $$(@:.lo=.cc)
endef
$(foreach folder,$(unity_core) $(unity_provider) $(unity_tools) $(unity_selftest),$(eval $(call unity_rule,$(folder))))
$(call unity_name,$(unity_tools)): ucxlike_info_commit.h

# What the strict cores have in common.
unity_strict := unity/fabtests-ext_strict.lo
override fabtests_ext_strict_libstrict_la_OBJECTS := $(unity_strict)
$(unity_strict): $(wildcard $(addprefix $(unity_root)fabtests-ext/strict/,*.cc *.h)) | $(unity_first)
	@mkdir -p unity
	@printf '#include "$(unity_root)%s"\n' $(filter %.cc,$(strict_sources)) >$(@:.lo=.cc)
	$(AM_V_CXX)$(LTCXXCOMPILE) -I$(unity_root)fabtests-ext $(unity_first_flags) -c -o $@ $(@:.lo=.cc)

# unity_suite PROGRAM ALONE...: its files but ALONE, which have names of their own that others have, too. The list is
# read when the rule runs: the Makefile has it.
unity_suites :=
unity_suite_headers := $(wildcard $(addprefix $(unity_root)fabtests-ext/,*/*.h */*/*.h))
define unity_suite
unity_suites += $1.o
override $(subst /,_,$(subst -,_,$1))_OBJECTS := $1.o $2
$1.o: $(wildcard $(unity_root)$(dir $1)*.cc $(unity_root)$(dir $1)*/*.cc) $(unity_headers) $(unity_suite_headers)
	@mkdir -p unity $$(@D)
	@printf '#include "$(unity_root)%s"\n' $$(filter-out $(2:.o=.cc),$$(filter %.cc,$$($(subst /,_,$(subst -,_,$1))_SOURCES))) \
	  >unity/$(notdir $1).cc
	$$(AM_V_CXX)$$(CXXCOMPILE) -c -o $$@ unity/$(notdir $1).cc
endef
$(eval $(call unity_suite,fabtests-ext/conformance/uct/uct_test,fabtests-ext/conformance/uct/transport/uct_sm_limits_test.o))
$(eval $(call unity_suite,fabtests-ext/conformance/uct/uct_strict_test))
$(eval $(call unity_suite,fabtests-ext/conformance/ucp/ucp_strict_test))

# The other suites: some of a folder are one object, each file in a namespace of its own unless it opens one. Each of
# their programs is linked with it, and runs the cases of its own file (suite_main.cc), so they are one program with
# several names.
unity_main := fabtests-ext/common/suite_main.o
# Suites that need other objects or libraries than those of their folder, open a namespace of the engine, have functions
# in place of the system's, or set up the environment before main().
unity_lone_suites := $(addprefix fabtests-ext/,conformance/prov/prov_allocation_test conformance/prov/prov_claim_test \
	conformance/prov/prov_info_test conformance/prov/prov_liar_test conformance/prov/prov_mc_test \
	conformance/ucp/ucp_allocation_test conformance/ucp/ucp_broken_provider_test \
	conformance/ucp/peers/ucp_death_test conformance/ucp/peers/ucp_network_test unit/ucp/ucp_proto_test \
	unit/ucp/ucp_protocols_test) \
	$(patsubst $(unity_root)%.cc,%,$(shell grep -lE '^namespace [a-z]|^extern "C"|/strict_cores.h' \
	$(wildcard $(addprefix $(unity_root)fabtests-ext/,unit/*_test.cc unit/*/*_test.cc conformance/*/*_test.cc \
	conformance/*/*/*_test.cc))))
# suites_in FOLDER: its programs that share an object.
suites_in = $(filter-out $(unity_lone_suites),$(patsubst $(unity_root)%.cc,%,$(wildcard \
	$(unity_root)fabtests-ext/$1/*_test.cc $(unity_root)fabtests-ext/$1/*/*_test.cc)))

# shared_program PROGRAM OBJECT: the Makefile's list of its objects, if it has one, with OBJECT in place of its own.
define shared_program
override $(subst /,_,$(subst -,_,$1))_OBJECTS = $$(patsubst $1.o,$2 $(unity_main),$$(or $$(am_$(subst /,_,$(subst -,_,$1))_OBJECTS),$1.o))

endef
# has_one_file PROGRAM: stops make if it has cases in several files, of which suite_main.cc would run those of one.
has_one_file = $(if $(word 2,$(filter %_test.cc,$($(subst /,_,$(subst -,_,$1))_SOURCES))),\
	$(error $1 has cases in several files: it cannot share an object))
# shared_object OBJECT PROGRAM...
define shared_object
unity_suites += $1
$(if $(filter $(unity_site_suites),$2),$(2:fabtests-ext/conformance/ucp/%=fabtests-ext/site/%): $1)
$(foreach program,$2,$(call shared_program,$(program),$1))
$(wordlist 2,10,$2): $(firstword $2)
$(wordlist 2,10,$2): override private CXXLINK = ln -f $(firstword $2) $$@ &&:
$1: $(addprefix $(unity_root),$(addsuffix .cc,$2)) $(unity_headers) $(unity_suite_headers)
	$$(foreach program,$2,$$(call has_one_file,$$(program)))
	@mkdir -p unity $$(@D)
	@{ grep -h '^#include' $$(filter %.cc,$$^) | awk '!seen[$$$$0]++'; \
	  for file in $$(filter %.cc,$$^); do \
	    if grep -q '^namespace [a-z]' "$$$$file"; then \
	      printf '#include "%s"\n' "$$$$file"; \
	    else \
	      printf 'namespace in_%s {\n#include "%s"\n}\n' "$$$$(basename "$$$$file" .cc)" "$$$$file"; \
	    fi; \
	  done; } >unity/$(subst /,_,$(1:.o=.cc))
	$$(AM_V_CXX)$$(CXXCOMPILE) -c -o $$@ unity/$(subst /,_,$(1:.o=.cc))
endef
# What the thread sanitizer leaves out is not compiled for it, either: it shares no object with the others.
unity_unthreaded := $(shell sed -n '/^single_threaded_units/,/[^\\]$$/p' $(unity_root)fabtests-ext/unit/Makefile.inc | \
	grep -o 'fabtests-ext/unit/[a-z0-9_/]*')
# shared_objects NAME SUITE...: ten suites an object.
define shared_objects
$(if $2,$(eval $(call shared_object,fabtests-ext/$1_$(words $2).o,$(wordlist 1,10,$2)))$(call shared_objects,$1,$(wordlist 11,$(words $2),$2)))
endef
# Some of these open a namespace of the tests, and none has a name there that another has.
unity_uct_suites := $(patsubst %,fabtests-ext/conformance/uct/uct_%_test,cm cm_stranger invalid_args ports sm_deaths \
	sockaddr versions)
# Those that a site runs are linked with the installed library, which has no internals for the others.
unity_site_suites := $(addprefix fabtests-ext/conformance/ucp/,$(shell sed -n '/^site_ucp_suites/,/[^\\]$$/p' \
	$(unity_root)fabtests-ext/site/Makefile.inc | grep -oE '([a-z]+/)?ucp_[a-z_]*_test'))
unity_site_suites := $(filter $(unity_site_suites),$(call suites_in,conformance/ucp))
unity_site := $(unity_site_suites:fabtests-ext/conformance/ucp/%=fabtests-ext/site/%)
$(call shared_objects,unit/unthreaded,$(filter $(unity_unthreaded),$(call suites_in,unit)))
$(call shared_objects,unit/threaded,$(filter-out $(unity_unthreaded),$(call suites_in,unit)))
$(call shared_objects,conformance/ucp/site,$(unity_site_suites))
$(call shared_objects,conformance/ucp/suites,$(filter-out $(unity_site_suites),$(call suites_in,conformance/ucp)))
$(call shared_objects,conformance/uct/suites,$(unity_uct_suites))
$(call shared_objects,conformance/prov/suites,$(call suites_in,conformance/prov))
unity_suites += $(unity_main)
$(unity_main): $(unity_root)fabtests-ext/common/suite_main.cc
	@mkdir -p $(@D)
	$(AM_V_CXX)$(CXXCOMPILE) -c -o $@ $<
$(unity_site): $(unity_main) libucxlike.la
	@mkdir -p $(@D)
	$(site_link)
.DEFAULT_GOAL :=
